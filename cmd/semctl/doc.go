// Command semctl uses and looks after semaphores from a terminal, a script or a container.
//
// This package is the command line: it reads flags, asks, and prints. What it asks with is remote
// (servers and their replies); the live view is in top, the load generator in load.
//
//	main.go        the process: arguments, signals, exit status
//	app.go         the program without its process
//	commands.go    the commands
//	connection.go  which servers, and how to reach them
//	session.go     what every command is given
//	status.go      exit statuses
//	print.go       tables and JSON, and text that may be anything
//	confirm.go     the question before something is destroyed
//
// Each other file is a command, or a few of one kind. A command is a struct with its flags as fields
// and a Run method, which is given the session and, unless it sees to signals itself, a context that
// ends at the first of them. It returns nil, or an error that knows its exit status (status.go).
//
// Whatever comes from a server may have been chosen by a stranger: it is printed through text, which
// lets no control character reach a terminal.
//
// To add a command, write its struct and its Run, add it to commands.go, and describe it in
// docs/semctl.md; completion and help follow.
package main
