// Package load puts servers under a load that is always the same, and measures what clients see.
//
// Every client is a connection that acquires and releases: some requests in one pipeline, with or
// without a wait in line, as fast as it can or at a rate. The same load can be put on a Redis in which
// scripts do what the server does (redis.go), so that two figures of one machine can be compared.
//
//	load.go       a run from its beginning to its end
//	worker.go     one client
//	target.go     what a client says: to a semserver, or (redis.go) to a Redis
//	wire.go       the protocol, with as little work as possible: the load shares the machine
//	record.go     latencies and counts
//	report.go     what came of it
//
// How latencies are to be read: without a rate a client sends its next request when the last one is
// answered, so a server that stalls is asked less, and a stall counts once for each client. With a rate
// a latency counts from when the request was due, and a stall counts in full.
//
// Besides measuring, a run watches the promise: how many permits of a semaphore its clients held at one
// time, by their own count, which can only be too low.
//
// To add a kind of target, implement target.
package load
