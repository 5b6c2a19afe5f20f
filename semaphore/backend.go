package semaphore

// Backend is an engine: it keeps semaphores and decides requests. All methods may be called from
// many goroutines at once.
type Backend interface {
	// Do carries out up to MaxRun requests of one client, in their order, and returns one reply for each. They are
	// not a transaction: each is decided by itself, and those of other clients may come in between.
	// Do returns as soon as every request has been decided or stands in line. Only the last one may
	// be an Acquire with Wait; its reply's value is a *Waiting when it stands in line.
	//
	// Do always returns, within the engine's hold time where it cannot decide: with ErrDown where a
	// request was certainly not applied, with Uncertain where that is not known. The engine keeps
	// neither slice.
	Do(requests []Request) []Reply

	// GiveBack returns a grant that was never told to the client: the permits are free again, unless
	// the grant was replayed or renewed meanwhile. It does not wait for the outcome.
	GiveBack(key string, g *Grant)
}

// Waiting is a request that stands in line. Its Done channel receives exactly one reply: a *Grant,
// nil when no permit came in time or it left the line, or an error. The reply comes at the latest a
// second after the request's Wait has passed, whatever happens to the engine.
type Waiting struct {
	Done <-chan Reply
	// Leave asks to leave the line at once. The reply on Done then says how that went: nil and no
	// error when it left, or the grant that came first. It may be called at any time, more than
	// once, from any goroutine, and does not block.
	Leave func()
	// Quit ends the wait because the server stops, not the client: the reply on Done comes at once,
	// as after Leave or with ErrShutdown, and the engine may keep the place for a while for whoever
	// comes back, at another server, with the same holder. It may be called as Leave may. Nil: Leave
	// is all there is.
	Quit func()
}
