package script

import (
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func TestSmoke(t *testing.T) {
	r := newRig(t)
	r.create("a", 2)
	r.books("a", 2, 0)
	g := r.acquire("a", "x", time.Minute)
	t.Logf("%+v", g)
	r.books("a", 1, 1)
	t.Logf("%+v", r.ask(semaphore.Acquire{Key: "a", Holder: "x", Permits: 1}))
	t.Logf("%+v", r.ask(semaphore.Acquire{Key: "a", Holder: "y", Permits: 1}).Value)
	t.Logf("%+v", r.ask(semaphore.Acquire{Key: "a", Holder: "z", Permits: 1}))
	t.Logf("%+v", r.ask(semaphore.Renew{Key: "a", Holder: "x"}))
	t.Logf("%+v", r.ask(semaphore.Check{Key: "a", Holder: "x", Token: g.Token}))
	t.Logf("%+v", r.ask(semaphore.Release{Key: "a", Holder: "x"}))
	t.Logf("%+v", r.ask(semaphore.Release{Key: "a", Holder: "y"}))
	r.books("a", 2, 0)
	t.Logf("%+v", r.do("HGETALL", "sem:a:meta"))
}

func TestSmokeCare(t *testing.T) {
	r := newRig(t)
	r.create("a", 2)
	r.acquire("a", "x", time.Minute)
	t.Logf("%+v", r.info("a"))
	t.Logf("%+v", r.care(semaphore.Resize{Key: "a", Capacity: 5}))
	r.books("a", 4, 1)
	t.Logf("%+v", r.care(semaphore.Reconcile{Key: "a"}))
	r.do("DEL", "sem:a:holders")
	t.Logf("%+v", r.care(semaphore.Reconcile{Key: "a"}))
	r.books("a", 4, 1)
	r.do("DEL", "sem:a:permits")
	t.Logf("%+v", r.care(semaphore.Reconcile{Key: "a"}))
	r.books("a", 4, 1)
	t.Logf("%+v", r.care(semaphore.Delete{Key: "a"}))
	raw, err := r.send(r.lib.Holders(semaphore.Holders{Key: "a", Count: 10}))
	t.Log(raw, err)
	a, err := ReadHolders(raw)
	t.Logf("%+v %v", a.Value, err)
	sc := semaphore.Scan{Count: 10}
	raw, err = r.send(r.lib.Scan(sc)[0])
	t.Log(raw, err)
	raw, err = r.send(r.lib.Tend(r.stamp(), "a"))
	t.Log(raw, err)
	t.Logf("%+v", r.care(semaphore.Delete{Key: "a", Force: true}))
	t.Logf("%+v", r.do("KEYS", "*"))
}
