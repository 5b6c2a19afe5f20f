// Package remote is semctl's side of the wire: which servers there are, how a request finds one that
// answers, and what the replies mean.
//
//	address.go   what may be written for a server
//	servers.go   several servers used as one
//	attempt.go   one attempt, and what may be concluded from its failure
//	fields.go    replies that are maps
//	rows.go      replies that are listings, read page by page
//
// Every command of the protocol may be sent again when its answer was lost, because each names what
// it is about: acquire and renew name a holder, create and resize say what shall be. So Servers goes
// from server to server until one answers, and a Reply says when an earlier attempt may already have
// done the work. What must not be sent twice says so (Command.Once).
//
// To add a listing, write its row in rows.go and how to read it from a reply.
package remote
