package load

import (
	"context"
	"strconv"
	"time"
)

// answerTime is how long a reply may take, beyond a wait.
const answerTime = 10 * time.Second

// redialPause is the time between two attempts to connect.
const redialPause = 50 * time.Millisecond

// worker is one client.
type worker struct {
	run      *run
	key      string
	crowd    *crowd
	at       int // the address that it uses
	conn     *conn
	keepOpen func() bool // ends the watch that closes conn at the cut
	asked    []string    // holders of the round under way
	held     []string    // those of them that hold
	done     round
	due      time.Time // of the next round, with a rate
	period   time.Duration
}

func newWorker(r *run, id int) *worker {
	k := id % len(r.keys)
	w := &worker{run: r, key: r.keys[k], crowd: &r.crowds[k], at: id % len(r.records)}
	if r.cfg.Rate > 0 {
		w.period = time.Duration(float64(r.cfg.Clients*r.cfg.Pipeline) / r.cfg.Rate * float64(time.Second))
		// Spread over the period, so that they do not all come at once.
		w.due = time.Now().Add(w.period * time.Duration(id) / time.Duration(r.cfg.Clients))
	}
	return w
}

// work acquires and releases until the run stops; at the cut its connection is closed. It returns the
// last error.
func (w *worker) work(cut context.Context) (last error) {
	defer w.close()
	for w.run.stopping.Err() == nil {
		w.done.reset()
		if w.conn == nil {
			if last = w.connect(cut); last != nil {
				w.moveOn()
				w.sleep(redialPause)
				continue
			}
		}
		if !w.awaitTurn() || !w.run.reserve(w.run.cfg.Pipeline) {
			break
		}
		if err := w.round(); err != nil {
			last = err
			w.close()
			w.moveOn()
			continue
		}
		w.run.take(w.run.records[w.at], &w.done)
	}
	return last
}

// moveOn notes that an address has failed, and turns to the next one. A connection that is ended with
// the run has not failed.
func (w *worker) moveOn() {
	if w.run.stopping.Err() != nil {
		return
	}
	w.done.errors = append(w.done.errors, "connection")
	w.run.records[w.at].take(&w.done)
	w.at = (w.at + 1) % len(w.run.records)
}

// reserve takes requests of those that are left.
func (r *run) reserve(n int) bool {
	return r.cfg.Requests == 0 || r.left.Add(-int64(n)) > -int64(n)
}

// take adds what a client did at an address.
func (r *run) take(at *record, done *round) {
	if done.granted > 0 {
		r.gap.end()
		at.gap.end()
	}
	at.take(done)
}

// connect connects to the address of the worker.
func (w *worker) connect(cut context.Context) error {
	c, err := dial(w.run.stopping, w.run.records[w.at].addr, w.run.cfg.Servers)
	if err != nil {
		return err
	}
	w.conn = c
	w.keepOpen = context.AfterFunc(cut, func() { _ = c.net.Close() })
	return nil
}

// close ends the connection. What it held counts as given back, though its lease goes on.
func (w *worker) close() {
	if w.conn == nil {
		return
	}
	w.keepOpen()
	_ = w.conn.net.Close() // the worker is through with it
	w.conn = nil
	for range w.held {
		w.crowd.leave()
	}
	w.held = w.held[:0]
}

// awaitTurn waits until a round is due.
func (w *worker) awaitTurn() bool {
	if w.period > 0 {
		w.sleep(time.Until(w.due))
	}
	return w.run.stopping.Err() == nil
}

func (w *worker) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.run.stopping.Done():
	case <-timer.C:
	}
}

// round acquires, holds, and releases.
func (w *worker) round() error {
	cfg := &w.run.cfg
	began := time.Now()
	if w.period > 0 {
		began, w.due = w.due, w.due.Add(w.period)
	}
	w.asked = w.asked[:0]
	for range cfg.Pipeline {
		holder := w.run.prefix + "-" + strconv.FormatInt(w.run.holders.Add(1), 10)
		w.asked = append(w.asked, holder)
		w.run.target.acquire(w.conn, w.key, holder, cfg.Wait)
	}
	if err := w.conn.flush(answerTime + cfg.Wait); err != nil {
		return err
	}
	for _, holder := range w.asked {
		if err := w.readGrant(holder, began); err != nil {
			return err
		}
	}
	if len(w.held) == 0 || cfg.AcquiresOnly {
		w.held = w.held[:0]
		return nil
	}
	if cfg.Hold > 0 {
		w.sleep(cfg.Hold)
	}
	return w.release()
}

// readGrant reads the answer to an acquire.
func (w *worker) readGrant(holder string, began time.Time) error {
	r, err := w.conn.read()
	switch {
	case err != nil:
		return err
	case r.kind == kindError:
		w.done.fail(r.text)
		return nil
	case r.kind == kindNull:
		w.done.refused++
		return nil
	}
	if replies := w.run.target.settle(w.conn, w.key, holder, w.run.cfg.Wait); replies > 0 {
		if err := w.conn.flush(answerTime); err != nil {
			return err
		}
		for range replies {
			if _, err := w.conn.read(); err != nil {
				return err
			}
		}
	}
	w.done.acquire = append(w.done.acquire, time.Since(began))
	w.done.granted++
	w.held = append(w.held, holder)
	if !w.run.cfg.AcquiresOnly {
		w.crowd.enter()
	}
	return nil
}

// release gives back what the round got. By the clients' own count it is given back before the server
// is asked, so that the count is never too high.
func (w *worker) release() error {
	for _, holder := range w.held {
		w.crowd.leave()
		w.run.target.release(w.conn, w.key, holder)
	}
	replies := len(w.held)
	w.held = w.held[:0]
	began := time.Now()
	if err := w.conn.flush(answerTime); err != nil {
		return err
	}
	for range replies {
		r, err := w.conn.read()
		switch {
		case err != nil:
			return err
		case r.kind == kindError:
			w.done.fail(r.text)
		case r.number != 1:
			w.done.fail("not-held")
		}
		w.done.release = append(w.done.release, time.Since(began))
	}
	return nil
}
