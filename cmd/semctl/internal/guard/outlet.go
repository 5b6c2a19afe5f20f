package guard

import (
	"io"
	"sync"
	"time"
)

const (
	// outletQueue is how many pieces may be unwritten before the next one is dropped.
	outletQueue = 64
	// outletFlush is how long the last ones may take.
	outletFlush = time.Second
)

// Outlet writes to a stream without being held up by it: a pipe that nobody reads from must not delay the
// end of a command whose permit is over.
type Outlet struct {
	queue chan []byte
	done  chan struct{}

	mu     sync.Mutex
	closed bool
}

// NewOutlet begins to write to a stream.
func NewOutlet(to io.Writer) *Outlet {
	o := &Outlet{queue: make(chan []byte, outletQueue), done: make(chan struct{})}
	go func() {
		defer close(o.done)
		for piece := range o.queue {
			_, _ = to.Write(piece) // nobody is left to be told
		}
	}()
	return o
}

// Write hands over a piece, or drops it if the stream is stuck. It never fails.
func (o *Outlet) Write(piece []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(piece), nil
	}
	select {
	case o.queue <- append([]byte(nil), piece...):
	default:
	}
	return len(piece), nil
}

// Close waits until everything is written, or for a second where the stream is stuck.
func (o *Outlet) Close() {
	o.mu.Lock()
	closed := o.closed
	o.closed = true
	o.mu.Unlock()
	if !closed {
		close(o.queue)
	}
	select {
	case <-o.done:
	case <-time.After(outletFlush):
	}
}
