package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/semserver/semserver/redisbackend/script"
)

var (
	errConnecting = errors.New("connecting")
	errReplaced   = errors.New("another server has taken its place")
	errClosed     = errors.New("the server is stopping")
)

// Link carries calls of scripts to a Redis and their answers back. A script looks at the types of its keys
// before it writes, does nothing after a time that the call carries, and finds what an earlier call with the
// same arguments has done; its keys, at least one, share a slot where the Redis is a Cluster. Its methods may be called from any
// goroutine.
type Link struct {
	options  Options
	dialer   dialer
	counters counters

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // what looks for the servers
	fleet  fleet
	ears   *ears
	limbo  *queue // calls that no server is known for
}

// counters are for Report.
type counters struct {
	calls, batches, down, refused, unknown, unreplicated atomic.Int64
}

// fleet is the servers that take calls.
type fleet interface {
	// node is the one that has a key, nil when none is known.
	node(key string) *node
	// nodes are all of them.
	nodes() []*node
	// first waits until each was tried once.
	first(ctx context.Context)
	// ready is nil when every key has a server that can be used.
	ready() error
	// move notes that another server has the slot of a key, and returns that one; nil: there are no slots.
	move(key, addr string) *node
	// peek is the server at this address; nil: there are no slots.
	peek(addr string) *node
	// look has it found out soon which server has which slot.
	look()
	// start begins to look for servers.
	start()
	// close ends all lanes.
	close()
}

// Open begins to connect and waits for the first attempt, or the end of ctx. A Redis that cannot be
// used as it is (a wrong password, too old a version, another mode than the URL says) is an error. One
// that cannot be reached, or takes no calls at the moment, is not: Ready says so, and the Link goes on
// trying until it is closed.
func Open(ctx context.Context, o Options) (*Link, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	server, _ := o.credentials()
	l := &Link{options: o, dialer: dialer{options: o, login: server, db: o.Target.DB}, limbo: newQueue()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	switch o.Target.Mode {
	case Sentinel:
		l.fleet = openWatched(l)
	case Cluster:
		l.fleet = openSlotted(l)
	default:
		l.fleet = openSingle(l)
	}
	l.ears = newEars(l)
	l.fleet.start()
	l.work.Go(l.dismiss)
	if err := l.first(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// first waits until every server that is known has been tried, and returns what no patience will mend.
func (l *Link) first(ctx context.Context) error {
	l.fleet.first(ctx)
	err := l.fleet.ready()
	if err == nil || !lasts(err) {
		return nil
	}
	return fmt.Errorf("use %s: %w", l.options.Target, err)
}

// firstOf waits until each of these was tried once.
func firstOf(ctx context.Context, nodes []*node) {
	for _, n := range nodes {
		select {
		case <-n.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends everything and waits for it. Calls that were sent get their answers, within the timeout;
// the others are told that they were not sent, as are those that are sent later.
func (l *Link) Close() {
	l.cancel()
	l.ears.close()
	l.work.Wait()
	l.fleet.close()
	for _, o := range l.limbo.close() {
		l.answer(o, nil, down(errClosed))
	}
}

// Send sends a call and returns. Then done is called once, by another goroutine, which it must not hold
// up. With an error of nil the reply is what the script has returned: nil, an int64, a string or an
// []any of these. With ErrUnreplicated it is as well, but may be lost. Otherwise there is none: a
// *semaphore.Error says that the call was certainly not executed, by the code CLUSTERDOWN that it may be
// sent again, by BACKEND or WRONGTYPE that Redis has refused it; ErrUnknown, that it may have been.
func (l *Link) Send(c script.Call, done func(reply any, err error)) {
	o := &order{Call: c, done: done}
	l.counters.calls.Add(1)
	n := l.fleet.node(c.Keys[0])
	if n != nil && n.queue.put(o) || l.limbo.put(o) {
		return
	}
	l.answer(o, nil, down(errClosed))
}

// dismiss answers the calls that no server is known for, until the Link is closed.
func (l *Link) dismiss() {
	var batch []*order
	for {
		batch = l.limbo.take(batch)
		for _, o := range batch {
			l.answer(o, nil, beforehand(l.absent()))
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-l.limbo.wake:
		case <-l.ctx.Done():
			return
		}
	}
}

// absent is why there is no server for a key.
func (l *Link) absent() error {
	if l.ctx.Err() != nil {
		return errClosed
	}
	if err := l.fleet.ready(); err != nil {
		return err
	}
	return errConnecting
}

// redirect sends a call to the server that another has named.
func (l *Link) redirect(o *order, addr string, ask bool) bool {
	n := l.fleet.peek(addr)
	if !ask {
		n = l.fleet.move(o.Keys[0], addr)
	}
	if n == nil {
		return false
	}
	o.ask = ask
	return n.queue.put(o)
}

// answer ends a call.
func (l *Link) answer(o *order, reply any, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrUnknown):
		l.counters.unknown.Add(1)
	case errors.Is(err, ErrUnreplicated):
		l.counters.unreplicated.Add(1)
	case errors.Is(err, down(err)):
		l.counters.down.Add(1)
	default:
		l.counters.refused.Add(1)
	}
	o.done(reply, err)
}

// Now estimates the clock of the server that has a key.
func (l *Link) Now(key string) Instant {
	if n := l.fleet.node(key); n != nil {
		return n.clock.now()
	}
	return newClock().now()
}

// Ready is nil while every key has a server that can be used, else why not.
func (l *Link) Ready() error { return l.fleet.ready() }
