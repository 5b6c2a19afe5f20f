// Package script holds the steps of Redis mode: what a semaphore is in Redis, the Lua scripts that move
// it, and for each of them a function that builds the call and one that reads the reply. It sends
// nothing itself: a [Call] is what travels, and whoever sends it hands back what Redis replied.
//
// # What is in Redis
//
// The keys of a semaphore called cache-loader, with the prefix sem: ([Layout]):
//
//	sem:cache-loader:permits  List  one placeholder per free permit
//	sem:cache-loader:holders  ZSET  a member per permit that is held, scored by when it falls free
//	sem:cache-loader:meta     Hash  capacity, settings, books, line, last calls
//	sem:cache-loader:grants   Hash  holder -> token, slots, permits, end of the lease, …
//	sem:cache-loader:slots    ZSET  the free slots below the highest one ever taken
//	sem:cache-loader:ends     ZSET  holder -> end of the lease, where QUARANTINE makes the score later
//	sem::registry             ZSET  the names of all semaphores, by a number that only grows
//
// The first two are public: clients may work on them by hand, with BRPOP and ZADD, beside us. So
// free + held = capacity is the one invariant, the ZSET is the truth about who holds, and a record in
// grants counts only while its member has the score that we wrote. A holder without a record is a raw
// holder: token 0, no slot. That the semaphore exists is said by the capacity in meta, never by the
// List, which Redis removes when it is empty.
//
// The first permit of a holder is the member named as the holder. What else is in the ZSET begins with
// a mark that no member of a HOLDER has: the further permits of a grant, permits in quarantine, permits
// that are reserved for another server ([Marked] tells them). A HOLDER that begins with the mark itself
// is escaped.
//
// # What a script promises
//
// It is atomic, declares every key that it touches, reads Redis's clock and no other, does a bounded
// amount of work and says when more is left. It checks first and writes last. Three things make it safe
// to send again ([Stamp]): after NotAfter it does nothing; a call with a lower serial number than one
// that the same server has made on that semaphore does nothing; and each request has a ticket by which
// what it did the first time is known again. Out of memory, it refuses what would need some and goes on
// with what frees some. The comment at the head of each .lua file is its contract.
//
// # How the files fit
//
// call.go is what travels. layout.go names keys, tag.go makes them share a slot of a Redis Cluster.
// serve.go, its step for the requests that share calls; care.go, the requests that an operator makes;
// listing.go, those that read; message.go, what scripts publish; refusal.go, how a refusal is said.
//
// The scripts that move permits begin with open.lua, which opens the books, and books.lua, which moves
// permits within them and closes them; seldom.lua has what they seldom do. In serve, plain.lua comes
// first: whoever asks for one permit, while nobody waits and nothing was done by hand, is served there
// without any function, because functions are made anew in each call and that is most of its cost.
// line.lua is the line that servers share, usage.lua how much is in use.
//
// To add a step, write its .lua file with its contract on top, name it in scripts.go, and add a builder
// and a reader beside those of its kind.
package script
