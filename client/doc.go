// Package client guards work in Go with permits of a semserver.
//
//	c, err := client.New(client.Config{Addrs: []string{"10.0.0.1:7360"}})
//	...
//	err = c.Do(ctx, "cache-loader", func(ctx context.Context, p *client.Permit) error {
//		return load(ctx)
//	}, client.Capacity(8), client.Wait(5*time.Minute), client.Lease(30*time.Second))
//
// At most eight of all programs that do this load at once; the others stand in line, first come, first
// served. [Client.Acquire] and [Permit.Release] are the two halves of Do.
//
// # What a permit promises
//
// A permit is held for a lease, which the client renews in the background at a third of its length,
// and goes on trying to until the very end when servers do not answer. The permit's context ends
// before the lease can have ended at the server, so that work that heeds its context never runs
// without a permit. For that the client counts from before it sent the request that was answered, on
// a clock that goes on while the machine is suspended, and stops a margin of 1 % of the lease and
// 50 ms early (lease.go). A grant that was waited for, or that the holder had already, is renewed
// before it is handed out, because nobody knows how old it is.
//
// Work that does not heed its context, or a process that is paused, can still be late. Only the
// guarded resource can refuse it: give it the permit's Token and Slots.
//
// # When servers do not answer
//
// Every request names its holder, so it can be repeated: the server gives the same grant again and
// takes nothing twice. The client does so by itself, at the next of its addresses, until for
// [Config].Patience no server has answered, or those that live had no leader and could not decide. Then the answer is [ErrUnavailable], or with
// WhenUnavailable(FailOpen) a permit that guards nothing: the work goes on without a semaphore.
//
// What go-redis has to say about a connection it writes to stderr, unless the program has given it a
// logger by redis.SetLogger.
//
// # How it is built
//
//	client.go     Config and Client: what belongs to all requests
//	option.go     what one Acquire can say
//	acquire.go    from a request to a grant: repeat, renew, or leave the line
//	permit.go     what is handed out, and how it is given back
//	grant.go      what servers answer
//	keeper.go     renewal, and the end of a permit
//	lease.go      the arithmetic of both; clock_*.go: the clock
//	exchange.go   one command to one server: answered, refused, or unanswered
//	tries.go      whom to ask next, and for how long
//	node.go       the connections to one server: those that wait are apart from the rest
//	pulse.go      whether a server lives, and can decide, at which requests wait; ready.go: how it is asked
//	undialled.go  what stands for a connection that could not be made
//	tasks.go      goroutines, and who waits for them
//	errors.go     what a caller may branch on
//
// Each permit has one goroutine, its keeper, which ends by Release. Each command in flight has one,
// which ends within the time that the command may take. [Client.Close] stops them and waits.
//
// To add a command, send it by [Client.Call]; to add an option of Acquire, edit option.go (the field,
// its check, and its place in the command).
package client
