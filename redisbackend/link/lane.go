package link

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane is a connection to a server with one batch under way, and the goroutine that keeps it.
type lane struct {
	node  *node
	batch []*order
	cmds  []*redis.Cmd
}

// run keeps the lane connected until the node is closed.
func (l *lane) run(ctx context.Context) {
	pause := retryFirst
	for ctx.Err() == nil {
		w, f, err := l.connect(ctx)
		if err != nil {
			l.node.fail(err)
			l.idle(ctx, pause)
			pause = min(2*pause, retryMost)
			continue
		}
		l.node.join(w, f)
		pause = retryFirst
		err = l.carry(ctx, w)
		l.node.part(w, err)
		w.close()
	}
}

// connect makes a connection to a server that is one that we want, and ready for our calls.
func (l *lane) connect(ctx context.Context) (*wire, facts, error) {
	ctx, cancel := context.WithTimeout(ctx, l.node.link.options.Timeout)
	defer cancel()
	addr, err := l.node.where(ctx)
	if err != nil {
		return nil, facts{}, err
	}
	w, err := l.node.link.dialer.dial(ctx, addr)
	if err != nil {
		return nil, facts{}, err
	}
	l.node.watch(w)
	f, err := l.ready(ctx, w)
	if err != nil {
		l.node.forget(w)
		w.close()
		return nil, facts{}, err
	}
	return w, f, nil
}

// ready makes a connection ready for calls. A server that was replaced meanwhile, and may not know, gets
// none: it is asked for once more where the server is when the connection can already be ended by leave.
func (l *lane) ready(ctx context.Context, w *wire) (facts, error) {
	f, err := w.look(ctx, l.node.link.options.Target.Mode, l.node.clock)
	if err != nil {
		return f, err
	}
	if err := w.prepare(ctx, l.node.link.options.Scripts); err != nil {
		return f, err
	}
	if addr, err := l.node.where(ctx); err != nil || addr != w.addr {
		return f, errors.Join(errReplaced, err)
	}
	return f, nil
}

// idle waits before the next attempt, and answers at once what comes meanwhile.
func (l *lane) idle(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-l.node.queue.wake:
			if l.node.ready() == nil {
				l.node.queue.signal() // for the lane that is connected
				return
			}
			l.node.flush()
		}
	}
}

// carry sends batches until the connection breaks, and returns why it did.
func (l *lane) carry(ctx context.Context, w *wire) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
			if err := w.time(context.Background(), l.node.clock); err != nil {
				return err
			}
		case <-l.node.queue.wake:
			l.batch = l.node.queue.take(l.batch)
			if len(l.batch) == 0 {
				continue
			}
			if err := l.send(w); err != nil {
				return err
			}
		}
	}
}

// send carries one batch, answers it, and says whether the connection is at its end. It is not
// interrupted: what was sent gets its answer, or the timeout.
func (l *lane) send(w *wire) error {
	ctx := context.Background()
	replicas := l.node.link.options.Replicas
	pipe := w.Pipeline()
	l.cmds = l.cmds[:0]
	for _, o := range l.batch {
		if o.ask {
			pipe.Do(ctx, "asking")
		}
		l.cmds = append(l.cmds, pipe.Do(ctx, o.command()...))
	}
	var wait *redis.Cmd
	if replicas > 0 {
		wait = pipe.Do(ctx, "wait", replicas, l.node.link.options.ReplicaTimeout.Milliseconds())
	}
	before := w.sent.Load()
	_, _ = pipe.Exec(ctx) // each command has its own error
	e := end{lane: l, wire: w, sent: w.sent.Load() > before, replicated: true}
	if wait != nil {
		n, err := wait.Int()
		e.replicated = err == nil && n >= replicas
	}
	for i, o := range l.batch {
		e.answer(o, l.cmds[i])
	}
	l.node.link.counters.batches.Add(1)
	clear(l.batch)
	clear(l.cmds)
	err := e.finish(ctx)
	l.node.queue.back(e.again)
	return err
}

// end is how a batch came out.
type end struct {
	*lane
	wire       *wire
	sent       bool // anything at all
	replicated bool
	again      []*order // to be sent once more, by this node
	forgotten  bool     // the server did not know a script
	broken     error    // why the connection cannot be used further
}

// answer decides what becomes of a call.
func (e *end) answer(o *order, cmd *redis.Cmd) {
	reply, err := cmd.Val(), cmd.Err()
	var refusal redis.Error
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		err = nil
		if !e.replicated {
			err = ErrUnreplicated
		}
		e.node.link.answer(o, reply, err)
	case errors.As(err, &refusal):
		e.refuse(o, refusal)
	case !e.sent:
		// Nothing has left us: the connection was found closed. It goes with the next one.
		e.broken = err
		if o.tries++; o.tries >= maxTries {
			e.node.link.answer(o, nil, down(err))
			return
		}
		e.again = append(e.again, o)
	default:
		e.broken = err
		e.node.link.answer(o, nil, unknown(err))
	}
}

// refuse decides what becomes of a call that was answered by an error.
func (e *end) refuse(o *order, reply redis.Error) {
	word := firstWord(reply.Error())
	if word == "READONLY" || word == "LOADING" {
		e.broken = reply // the server has changed: it is looked at again before it gets another call
	}
	o.tries++
	last := o.tries >= maxTries
	addr, ask, moved := redirection(reply.Error(), e.wire.addr)
	switch {
	case word == "NOSCRIPT" && !last:
		e.forgotten = true
		e.again = append(e.again, o)
	case moved && !last && e.node.link.redirect(o, addr, ask):
	default:
		e.node.link.answer(o, nil, verdict(reply))
	}
}

// finish makes the connection ready for the next batch.
func (e *end) finish(ctx context.Context) error {
	if e.broken == nil && e.forgotten {
		return e.wire.prepare(ctx, e.node.link.options.Scripts)
	}
	return e.broken
}
