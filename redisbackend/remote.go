package redisbackend

import (
	"fmt"
	"sync"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// earsFor is how long a channel of a Redis Cluster is heard after the last waiter has gone.
const earsFor = 10 * time.Second

// remote is the books in a Redis.
type remote struct {
	link    *link.Link
	library *script.Library
	limits  semaphore.Limits
	cluster bool

	mu   sync.Mutex
	ears map[string]time.Time // the semaphores whose channels are heard: since when nobody waits; zero: somebody does
}

func newRemote(library *script.Library, limits semaphore.Limits, cluster bool) *remote {
	return &remote{library: library, limits: limits, cluster: cluster, ears: map[string]time.Time{}}
}

// send makes a call.
func (r *remote) send(c script.Call, done func(reply any, err error)) { r.link.Send(c, done) }

func (r *remote) now(key string) int64 { return r.link.Now(r.library.Layout().Permits(key)).Millis }

func (r *remote) serve(key string, stamp script.Stamp, s *script.Step, done func(*script.Outcome, error)) {
	call, err := r.library.Serve(key, stamp, s)
	if err != nil {
		go done(nil, unfit(err))
		return
	}
	r.send(call, func(reply any, err error) {
		o, err := read(reply, err, func() (*script.Outcome, error) { return script.ReadServe(s, reply) })
		done(o, err)
	})
}

func (r *remote) ask(q semaphore.Request, stamp script.Stamp, t semaphore.Ticket, done func(*script.Answer, error)) {
	call, reader, err := r.question(q, stamp, t)
	if err != nil {
		go done(nil, unfit(err))
		return
	}
	r.send(call, func(reply any, err error) {
		a, err := read(reply, err, func() (*script.Answer, error) { return reader(reply) })
		done(a, err)
	})
}

// question is the call of a request that has one of its own, and how its reply is read.
func (r *remote) question(q semaphore.Request, stamp script.Stamp, t semaphore.Ticket) (script.Call, func(any) (*script.Answer, error), error) {
	answer := func(reply any) (*script.Answer, error) { return script.ReadAnswer(q, reply) }
	most := r.limits.MaxSemaphores
	switch q := q.(type) {
	case semaphore.Create:
		return r.library.Create(stamp, q, most), answer, nil
	case semaphore.Resize:
		return r.library.Resize(stamp, q), answer, nil
	case semaphore.Delete:
		return r.library.Delete(stamp, q, t), answer, nil
	case semaphore.Reconcile:
		return r.library.Reconcile(stamp, q, t, most), answer, nil
	case semaphore.Holders:
		return r.library.Holders(q), script.ReadHolders, nil
	case semaphore.Inspect:
		return r.library.Inspect(stamp, q), func(reply any) (*script.Answer, error) { return script.ReadInspect(q, reply) }, nil
	}
	return script.Call{}, nil, fmt.Errorf("a %T cannot be asked", q)
}

// read reads a reply. One that makes no sense leaves open what was done.
func read[R any](reply any, err error, reader func() (*R, error)) (*R, error) {
	if reply == nil {
		return nil, err
	}
	result, wrong := reader()
	if wrong != nil {
		return nil, wrong
	}
	return result, err
}

func unfit(err error) error {
	return semaphore.Errorf(semaphore.CodeInvalid, "%s", err)
}

func (r *remote) listen(key string) {
	if !r.cluster {
		return // the one channel is heard all the time
	}
	r.mu.Lock()
	_, heard := r.ears[key]
	r.ears[key] = time.Time{}
	r.mu.Unlock()
	if !heard {
		r.link.Subscribe(r.library.Layout().Channel(key))
	}
}

func (r *remote) ignore(key string) {
	if !r.cluster {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ears[key] = time.Now()
}

// sweepEars ends the hearing of channels that are not of interest any more.
func (r *remote) sweepEars() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, since := range r.ears {
		if !since.IsZero() && time.Since(since) > earsFor {
			delete(r.ears, key)
			r.link.Unsubscribe(r.library.Layout().Channel(key))
		}
	}
}
