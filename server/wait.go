package server

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// probeEvery is Server.probeEvery, unless a test looks more often.
const probeEvery = 100 * time.Millisecond

// wait is a command that stands in line, for others to interrupt.
type wait struct {
	began   time.Time
	unblock chan semaphore.Reply // what to answer if it leaves the line without a grant
}

// mayWait makes the last request of the run interruptible if it may come to stand in line. That is
// before it does, so that whoever sees it in line can interrupt it.
func (c *conn) mayWait() *wait {
	a, ok := c.run[len(c.run)-1].request.(semaphore.Acquire)
	if !ok || a.Wait == 0 {
		return nil
	}
	w := &wait{began: time.Now(), unblock: make(chan semaphore.Reply, 1)}
	c.waiting.Store(w)
	return w
}

// interrupt asks the command to leave the line. It returns false where that was asked before.
func (w *wait) interrupt(instead semaphore.Reply) bool {
	select {
	case w.unblock <- instead:
		return true
	default:
		return false
	}
}

// await answers an Acquire that stands in line when its turn has come, its wait has ended, the client
// hangs up, somebody unblocks it, or the server stops.
func (c *conn) await(q call, line *semaphore.Waiting, w *wait) error {
	c.run, c.requests = nil, nil
	if err := c.flush(); err != nil {
		line.Leave()
		c.lost(&q, <-line.Done, w)
		return err
	}
	c.rest()
	metrics := c.server.metrics
	metrics.waiting.Inc()
	watch := c.watch()
	r := c.line(line, w, watch)
	c.waiting.Store(nil) // before the client is told: from then on there is nothing to unblock
	metrics.waiting.Dec()
	if watch.sees() {
		c.gone = watch.stop()
		c.lost(&q, r, w)
		return nil
	}
	// The client is told before the watch is stopped, which takes a change of goroutines: the time
	// from a release to the next grant is what everybody behind waits for.
	metrics.waited(r, time.Since(w.began))
	c.out.answer(&q, r)
	err := c.flush()
	c.gone = watch.stop()
	return err
}

// lost ends a wait whose client has hung up. Whatever came of it is not told; if the client has closed
// only its sending half, it reads that it got nothing.
func (c *conn) lost(q *call, r semaphore.Reply, w *wait) {
	c.server.metrics.waited(r, time.Since(w.began))
	c.server.metrics.hangups.Inc()
	if g, ok := r.Value.(*semaphore.Grant); ok {
		if !g.Replayed {
			c.giveBack(q.request.Semaphore(), g)
		}
		r = semaphore.Reply{}
	}
	c.out.answer(q, r)
}

// line stands in line until the outcome is certain. Who leaves may find that the grant came first. A
// server that stops does not leave for its client, which may come back for its place.
func (c *conn) line(line *semaphore.Waiting, w *wait, watch *watch) semaphore.Reply {
	gone := watch.done
	for {
		instead, end := semaphore.Reply{}, line.Leave
		select {
		case r := <-line.Done:
			return r
		case <-gone:
			if watch.err == nil {
				gone = nil
				continue
			}
		case instead = <-w.unblock:
		case <-c.server.stop:
			instead.Err = semaphore.ErrShutdown
			if line.Quit != nil {
				end = line.Quit
			}
		}
		end()
		if r := <-line.Done; r.Value != nil || r.Err != nil {
			return r
		}
		return instead
	}
}

// watch looks out for a hang-up while a command waits. Until it is stopped, it owns the reader: what
// the client sends ahead is kept there, in its place.
type watch struct {
	conn *conn
	quit chan struct{}
	done chan struct{} // closed when the watch has ended
	err  error         // valid then: how the client hung up, nil if it was stopped
}

func (c *conn) watch() *watch {
	w := &watch{conn: c, quit: make(chan struct{}), done: make(chan struct{})}
	c.setReadDeadline(time.Time{})
	go w.run()
	return w
}

// sees reports whether the client is known to have hung up by now.
func (w *watch) sees() bool {
	select {
	case <-w.done:
		return w.err != nil
	default:
		return false
	}
}

// stop ends the watch and returns how the client hung up, if it did.
func (w *watch) stop() error {
	close(w.quit)
	w.conn.setReadDeadline(time.Unix(1, 0))
	<-w.done
	return w.err
}

func (w *watch) run() {
	defer close(w.done)
	for w.conn.in.ahead() < w.conn.server.cfg.Wire.ReadAhead {
		_, err := w.conn.in.fill(w.conn.net)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			w.err = err
			return
		}
	}
	w.probe()
}

// probe goes on watching where no more is read: a full read-ahead must not hide a hang-up.
func (w *watch) probe() {
	// Its own view of the socket: the connection may look at the same moment, before it writes a grant.
	socket := newSocket(w.conn.net)
	tick := time.NewTicker(w.conn.server.probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		if socket.hungUp() {
			w.err = io.EOF
			return
		}
	}
}
