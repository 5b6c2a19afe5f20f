package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// rig is a Redis, and a server process that works on it.
type rig struct {
	testing.TB
	redis  redis.UniversalClient
	lib    *Library
	server uint64
	serial uint64
	floor  int64
	limits semaphore.Limits
}

// newRig starts a Redis for the test.
func newRig(t testing.TB, settings ...string) *rig {
	t.Helper()
	server := redisd.Run(t, settings...)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, PoolSize: connections})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	layout, err := NewLayout("sem:", TagAuto, false)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{TB: t, redis: client, lib: NewLibrary(layout), server: 1, limits: semaphore.DefaultLimits()}
}

// beside is another server process on the same Redis.
func (r *rig) beside() *rig {
	other := *r
	other.server, other.serial = r.server+1, 0
	return &other
}

func (r *rig) stamp() Stamp {
	r.serial++
	return Stamp{NotAfter: time.Now().Add(time.Minute).UnixMilli(), Server: r.server, Serial: r.serial, Floor: r.floor}
}

// send makes a call.
func (r *rig) send(c Call) (any, error) {
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	reply, err := r.redis.EvalSha(context.Background(), c.Script.SHA, c.Keys, args...).Result()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return r.redis.Eval(context.Background(), c.Script.Source, c.Keys, args...).Result()
	}
	return reply, err
}

// do sends a command to Redis as a client does that works by hand.
func (r *rig) do(args ...any) any {
	r.Helper()
	reply, err := r.redis.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		r.Fatalf("%v: %v", args, err)
	}
	return reply
}

// step makes the call of a step.
func (r *rig) step(key string, s *Step) *Outcome {
	r.Helper()
	o, err := r.try(key, r.stamp(), s)
	if err != nil {
		r.Fatalf("serve: %v", err)
	}
	return o
}

func (r *rig) try(key string, stamp Stamp, s *Step) (*Outcome, error) {
	r.Helper()
	s.Limits = r.limits
	c, err := r.lib.Serve(key, stamp, s)
	if err != nil {
		r.Fatal(err)
	}
	raw, err := r.send(c)
	if err != nil {
		return nil, err
	}
	return ReadServe(s, raw)
}

// ask makes one request that shares calls, and returns what became of it.
func (r *rig) ask(q semaphore.Request) Result {
	r.Helper()
	return r.step(q.Semaphore(), &Step{Ops: []Op{{Request: q, Ticket: r.ticket()}}}).Ops[0]
}

func (r *rig) ticket() semaphore.Ticket {
	return semaphore.Ticket{Incarnation: r.server, Number: r.serial + 1}
}

// care makes a request that has a call of its own.
func (r *rig) care(q semaphore.Request) semaphore.Reply {
	r.Helper()
	var call Call
	read := func(raw any) (*Answer, error) { return ReadAnswer(q, raw) }
	switch q := q.(type) {
	case semaphore.Create:
		call = r.lib.Create(r.stamp(), q, r.limits.MaxSemaphores)
	case semaphore.Resize:
		call = r.lib.Resize(r.stamp(), q)
	case semaphore.Delete:
		call = r.lib.Delete(r.stamp(), q, r.ticket())
	case semaphore.Reconcile:
		call = r.lib.Reconcile(r.stamp(), q, r.ticket(), r.limits.MaxSemaphores)
	case semaphore.Inspect:
		call = r.lib.Inspect(r.stamp(), q)
		read = func(raw any) (*Answer, error) { return ReadInspect(q, raw) }
	default:
		r.Fatalf("a %T has no call of its own", q)
	}
	raw, err := r.send(call)
	if err != nil {
		r.Fatalf("%T: %v", q, err)
	}
	a, err := read(raw)
	if err != nil {
		r.Fatalf("%T: %v", q, err)
	}
	return a.Reply
}

// create makes a semaphore.
func (r *rig) create(key string, capacity int64, settings ...semaphore.Settings) {
	r.Helper()
	c := semaphore.Create{Key: key, Capacity: capacity}
	if len(settings) > 0 {
		c.Settings = settings[0]
	}
	if got := r.care(c); got.Err != nil {
		r.Fatalf("create: %v", got.Err)
	}
}

// acquire asks for a permit and wants a grant.
func (r *rig) acquire(key, holder string, lease time.Duration) *semaphore.Grant {
	r.Helper()
	got := r.ask(semaphore.Acquire{Key: key, Holder: holder, Permits: 1, Lease: lease})
	g, ok := got.Value.(*semaphore.Grant)
	if !ok {
		r.Fatalf("acquire %q: got %+v, want a grant", holder, got)
	}
	return g
}

// number makes a request that is answered with a number.
func (r *rig) number(q semaphore.Request) int64 {
	r.Helper()
	got := r.ask(q)
	n, ok := got.Value.(semaphore.Number)
	if !ok {
		r.Fatalf("%+v: got %+v, want a number", q, got)
	}
	return int64(n)
}

func (r *rig) info(key string) *semaphore.Info {
	r.Helper()
	got := r.care(semaphore.Inspect{Key: key})
	if got.Err != nil {
		r.Fatalf("inspect %q: %v", key, got.Err)
	}
	return got.Value.(*semaphore.Info)
}

// books wants the public keys to say so many free and held permits.
func (r *rig) books(key string, free, held int64) {
	r.Helper()
	l, z := r.do("LLEN", r.lib.layout.Permits(key)), r.do("ZCARD", r.lib.layout.Holders(key))
	if l != free || z != held {
		r.Errorf("free and held: got %v and %v, want %d and %d", l, z, free, held)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
