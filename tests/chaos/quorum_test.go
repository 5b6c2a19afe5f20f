package chaos

import (
	"testing"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/internal/resp"
)

// Without a quorum nothing can be decided, and everybody is told in time.
func TestEverythingIsAnsweredWithoutAQuorum(t *testing.T) {
	for name, lose := range map[string]func(f *fleet.Fleet, i int){
		"nodes killed":  func(f *fleet.Fleet, i int) { f.Kill(i) },
		"nodes stopped": func(f *fleet.Fleet, i int) { f.Pause(i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withoutQuorum(t, lose)
		})
	}
}

func withoutQuorum(t *testing.T, lose func(f *fleet.Fleet, i int)) {
	const hold, wait = 2 * time.Second, 3 * time.Second
	f := open(t, 3, "--hold", hold.String())
	left := leader(t, f)
	c := dial(t, f.Addr(left))
	c.want("OK", "SEM.CREATE", "door", 1)
	g := c.acquire("door", "HOLDER", "a", "LEASE", 60_000)
	before := dial(t, f.Addr(left))
	before.start("SEM.ACQUIRE", "door", "HOLDER", "before", "WAIT", wait.Milliseconds())
	began := time.Now()
	c.inLine("door", "before")

	for _, i := range others(f, left) {
		lose(f, i)
	}

	pending := []inTime{{before, wait, began, "a wait that had begun"}}
	for what, args := range map[string][]any{
		"acquire": {"SEM.ACQUIRE", "door", "HOLDER", "b"}, "renew": {"SEM.RENEW", "door", "a", "LEASE", 60_000},
		"release": {"SEM.RELEASE", "door", "b"}, "check": {"SEM.CHECK", "door", "a", g.token}, "info": {"SEM.INFO", "door"},
		"create": {"SEM.CREATE", "window", 1}, "waiters": {"SEM.WAITERS", "door"},
	} {
		one := inTime{dial(t, f.Addr(left)), hold, time.Now(), what}
		one.start(args...)
		pending = append(pending, one)
	}
	waiting := inTime{dial(t, f.Addr(left)), wait, time.Now(), "a new wait"}
	waiting.start("SEM.ACQUIRE", "door", "HOLDER", "c", "WAIT", wait.Milliseconds())
	for _, one := range append(pending, waiting) {
		one.isRefused()
	}

	for _, i := range others(f, left) {
		f.Resume(i)
		must(t, f.Start(i))
	}
	leader(t, f)
	c.want(1, "SEM.CHECK", "door", "a", g.token)
	c.want(1, "SEM.RELEASE", "door", "a")
	c.acquire("door", "HOLDER", "d", "WAIT", 20_000)
}

// inTime is a request that must be answered in so much time, and a second.
type inTime struct {
	client
	within time.Duration
	began  time.Time
	what   string
}

// isRefused: without a quorum the answer is null or an error that fits.
func (r inTime) isRefused() {
	r.Helper()
	got, err := r.Receive(patience)
	took := time.Since(r.began)
	if err != nil {
		r.Errorf("%s: got %v after %v, want an answer", r.what, err, took)
		return
	}
	refused, isError := got.(resp.Error)
	if got != nil && (!isError || refused.Code() != "CLUSTERDOWN" && refused.Code() != "UNCERTAIN") {
		r.Errorf("%s: got %v, want CLUSTERDOWN, UNCERTAIN or null", r.what, got)
	}
	if most := r.within + time.Second + slack; took > most {
		r.Errorf("%s: answered after %v, want at most %v", r.what, took, most)
	}
}
