// Package semctl tests the program semctl as its users have it: the binary, against semserver
// processes, in real shells and terminals.
//
// To add a test, start a server with start, and call semctl with its ctl; what needs no process of
// semctl belongs beside its code in cmd/semctl.
package semctl
