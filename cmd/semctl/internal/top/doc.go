// Package top is the live view of semaphores in a terminal.
//
// It is a bubbletea program: Model holds what is shown, Update changes it for a key or for news, and
// View draws it. Servers are asked by commands, which run beside it and come back as news; nothing in
// Update waits.
//
//	run.go       the program
//	look.go      one look at all servers, and what has happened since the one before
//	source.go    how servers are asked
//	model.go     what is shown, and what changes it
//	keys.go      what a key does
//	overview.go  the view of all semaphores
//	detail.go    the view of one: holders and waiters
//	cursor.go    the selected row, which stays where it is while rows come and go
//	paint.go     columns, bars, colours
//
// Whoever is selected is remembered by name and not by row, so that what a key releases is what the
// eye saw, however the rows move meanwhile.
//
// To add a column, edit overview.go or detail.go. To add a key, edit keys.go and its help in paint.go.
package top
