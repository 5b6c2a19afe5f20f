// Package peer connects the nodes of a cluster: one port, authenticated connections, each for one
// purpose.
//
// Whoever dials says first what the connection is for and who it is (Greeting); whoever accepts
// answers who it is, or why it refuses. Only then does the connection belong to its purpose: Raft's
// own traffic, forwarded requests, or a question and its answer (Ask).
//
// To add a purpose, edit greeting.go, and give Network.Serve a handler for it.
package peer
