// Package link carries calls of scripts to a Redis that somebody else runs, and says truthfully what
// became of each. It knows nothing of semaphores.
//
// # Truth
//
// A call ends in one of four ways, and the difference between them is the purpose of this package (see
// [Link.Send]): it was answered; it was refused, so that nothing was done; it certainly did not reach
// Redis, so that it may be sent again; or nobody knows. To be sure of the third it must be known what
// was sent. So every connection counts its bytes, sends each call once, and is never replaced behind our
// back: go-redis, which speaks the protocol for us, gets connections that we have made, one for each
// client, and is told to repeat nothing. Before a connection carries calls, its server has been looked at:
// is it a master, is it new enough, is it deployed as the URL says, does it know the scripts.
//
// # Speed
//
// Each server has a queue and a few lanes. A lane is a connection with one batch of calls under way: while
// that is away, calls gather in the queue, and all of them are the next batch. So the busier it gets, the
// larger the batches are, and nothing ever waits for a batch to fill. A call that finds the server gone
// is answered at once, while the lanes try to connect, several times a second.
//
// # Which server
//
// The three kinds of deployment are three kinds of fleet: one server (single.go); one server that
// Sentinels name (watched.go), each of which is asked four times a second, and the word of most counts; the
// masters of a Redis Cluster (slotted.go), who are asked who has which slot, often while something does
// not work or a server has sent us elsewhere, else now and then. In a cluster a key that is being moved, with others of
// its slot that have been moved already, cannot be used by anybody (TRYAGAIN): calls are answered CLUSTERDOWN
// until the slot has arrived.
//
// # Time
//
// Scripts go by Redis's clock, so whoever tells them how long they may act must know it: [Link.Now]
// estimates it from below, out of a look four times a second and our own monotonic clock. An estimate
// that would have to go back, because the clock was stepped or another server has taken over, begins a new
// era and does not pass unnoticed.
//
// # Messages
//
// Subscriptions (listen.go, ear.go) are made anew by themselves, on whichever server has the channel. What
// was said meanwhile is lost; the listener is told so by a [Message] that is a Gap.
//
// To add a kind of deployment, add a fleet and a scheme to target.go; to add a reply that Redis may give
// instead of an answer, edit outcome.go.
package link
