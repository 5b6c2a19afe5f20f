package link

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// retryFirst and retryMost are the pauses between attempts to connect: they begin short and double.
	retryFirst = 20 * time.Millisecond
	retryMost  = 250 * time.Millisecond
	// complainEvery is how often it is logged that a server cannot be used.
	complainEvery = 10 * time.Second
	// heartbeat is how often a connection is asked for the time, which keeps the estimate of the clock
	// fresh and finds that a server is gone before a call does.
	heartbeat = 250 * time.Millisecond
)

// node is a server that takes calls: what waits for it, and the lanes that carry it there. Where there
// are Sentinels it is whichever server they name.
type node struct {
	link  *Link
	where func(context.Context) (addr string, err error)
	lost  func() // told when it cannot be used
	queue *queue
	clock *clock

	cancel context.CancelFunc
	work   sync.WaitGroup
	tried  chan struct{} // closed after the first attempt to connect

	mu     sync.Mutex
	lanes  int       // that are connected
	trials int       // that have ended
	why    error     // why none is
	said   time.Time // when that was last logged
	facts  facts
	wires  map[*wire]bool // what leave ends
}

// newNode begins to connect to a server.
func (l *Link) newNode(where func(context.Context) (string, error), lost func()) *node {
	n := &node{link: l, where: where, lost: lost, queue: newQueue(), clock: newClock(), tried: make(chan struct{}), wires: map[*wire]bool{}}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	for range l.options.Lanes {
		lane := &lane{node: n}
		n.work.Go(func() { lane.run(ctx) })
	}
	return n
}

// close ends the lanes, which answer what they have sent, and tells the rest that it was not.
func (n *node) close(why error) {
	left := n.queue.close()
	n.cancel()
	n.work.Wait()
	for _, o := range append(left, n.queue.close()...) {
		n.link.answer(o, nil, down(why))
	}
}

// join notes a lane's connection.
func (n *node) join(w *wire, f facts) {
	n.mu.Lock()
	first := n.lanes == 0
	news := first && f != n.facts
	n.lanes++
	n.facts, n.why = f, nil
	n.tryLocked()
	n.mu.Unlock()
	if first {
		n.log().Info("connected to Redis", "addr", w.addr, "version", f.version)
	}
	if news && f.evicts != "" {
		n.log().Warn("this Redis may drop keys when it is full, and with them permits: set maxmemory-policy noeviction", "addr", w.addr, "maxmemory_policy", f.evicts)
	}
}

// part notes the end of a connection.
func (n *node) part(w *wire, why error) {
	n.mu.Lock()
	n.lanes--
	last := n.lanes == 0
	delete(n.wires, w)
	n.why, n.said = why, time.Time{}
	n.mu.Unlock()
	if last && n.link.ctx.Err() == nil {
		n.log().Warn("the connection to Redis is lost", "addr", w.addr, "error", oneLine(why))
	}
}

// fail notes that a lane could not connect, and answers what waits when none can.
func (n *node) fail(why error) {
	n.mu.Lock()
	news := n.lanes == 0 && time.Since(n.said) > complainEvery
	if n.lanes == 0 {
		n.why = why
	}
	if news {
		n.said = time.Now()
	}
	n.tryLocked()
	n.mu.Unlock()
	if news && n.link.ctx.Err() == nil {
		n.log().Warn("Redis cannot be used", "error", oneLine(why))
	}
	n.lost()
	n.flush()
}

// tryLocked notes the end of an attempt.
func (n *node) tryLocked() {
	n.trials++
	if n.trials == 1 {
		close(n.tried)
	}
}

// flush answers what waits, unless there is a lane to carry it.
func (n *node) flush() {
	why := n.ready()
	if why == nil {
		return
	}
	for {
		orders := n.queue.take(nil)
		if len(orders) == 0 {
			return
		}
		for _, o := range orders {
			n.link.answer(o, nil, beforehand(why))
		}
	}
}

// ready is nil while calls can be carried, else why not.
func (n *node) ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lanes > 0 {
		return nil
	}
	if n.why == nil {
		return errConnecting
	}
	return n.why
}

// watch has a connection ended by leave; forget ends that.
func (n *node) watch(w *wire) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wires[w] = true
}

func (n *node) forget(w *wire) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.wires, w)
}

// leave ends the connections to every server but the one at addr: another has taken its place.
func (n *node) leave(addr string) {
	n.mu.Lock()
	var others []*wire
	for w := range n.wires {
		if w.addr != addr {
			others = append(others, w)
		}
	}
	n.mu.Unlock()
	for _, w := range others {
		_ = w.net.Close()
	}
}

func (n *node) log() *slog.Logger { return n.link.options.Logger }
