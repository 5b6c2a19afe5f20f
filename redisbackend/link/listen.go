package link

import "sync"

// Message is what comes on a channel. A Gap is no message: it says that the channel is heard from now
// on, and that earlier messages may have been missed. Every subscription begins with one, and every
// time that it had to be made anew.
type Message struct {
	Channel, Payload string
	Gap              bool
}

// Subscribe begins to hear a channel, until Unsubscribe. On a Redis Cluster channels are sharded, and
// share their slot with keys of the same name or tag.
func (l *Link) Subscribe(channel string) { l.ears.add(channel) }

// Unsubscribe ends what Subscribe began. What is under way may still be heard.
func (l *Link) Unsubscribe(channel string) { l.ears.remove(channel) }

// ears are the subscribed connections: one to each server that has a channel of ours.
type ears struct {
	link *Link
	work sync.WaitGroup

	mu       sync.Mutex
	channels map[string]*ear // nil: no server is known for it now
	open     map[*node]*ear
	closed   bool
}

func newEars(l *Link) *ears {
	return &ears{link: l, channels: map[string]*ear{}, open: map[*node]*ear{}}
}

func (e *ears) add(channel string) {
	n := e.link.fleet.node(channel)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.channels[channel]; !known && !e.closed {
		e.channels[channel] = nil
		e.placeLocked(channel, n)
	}
}

func (e *ears) remove(channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.channels[channel]; at != nil {
		at.dropLocked(channel)
	}
	delete(e.channels, channel)
}

// rearrange moves channels to the servers that have their slots now.
func (e *ears) rearrange() {
	e.mu.Lock()
	owners := make(map[string]*node, len(e.channels))
	for channel := range e.channels {
		owners[channel] = nil
	}
	e.mu.Unlock()
	for channel := range owners {
		owners[channel] = e.link.fleet.node(channel)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for channel, n := range owners {
		if _, known := e.channels[channel]; known {
			e.placeLocked(channel, n)
		}
	}
}

// placeLocked has a channel heard at the server that it belongs to. One that it belongs to no more says so,
// or cannot be reached: either has the servers looked for again.
func (e *ears) placeLocked(channel string, n *node) {
	at := e.channels[channel]
	if n == nil || e.closed || at != nil && at.node == n {
		return
	}
	if at != nil {
		at.dropLocked(channel)
	}
	now := e.open[n]
	if now == nil {
		now = newEar(e, n)
		e.open[n] = now
	}
	e.channels[channel] = now
	now.wanted[channel] = true
	now.nudge()
}

func (e *ears) close() {
	e.mu.Lock()
	e.closed = true
	for _, at := range e.open {
		at.cancel()
	}
	e.mu.Unlock()
	e.work.Wait()
}
