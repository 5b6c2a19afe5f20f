package chaos

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/chaos/internal/fleet"
	"github.com/semserver/semserver/tests/chaos/internal/proxy"
)

const (
	// failoverGoal is what an acquire may take after the leader was killed, at the 95th percentile of
	// failoverRounds, on an idle machine. A test on a busy one allows failoverLimit.
	failoverGoal   = time.Second
	failoverLimit  = 5 * time.Second
	failoverRounds = 20
	failoverBrief  = 6
)

// failovers kills the leader again and again, and measures how long an acquire through another node
// takes that is sent in that moment.
func failovers(t testing.TB, rounds int) (p50, p95 time.Duration) {
	f := open(t, 3)
	dial(t, f.Addr(1)).want("OK", "SEM.CREATE", "door", 1000)
	var took []time.Duration
	for round := range rounds {
		killed := leader(t, f)
		c := dial(t, f.Addr(others(f, killed)[round%2]))
		c.want("PONG", "PING")
		f.Kill(killed)
		began := time.Now()
		c.acquire("door", "HOLDER", fmt.Sprint("h", round))
		took = append(took, time.Since(began))
		must(t, f.Start(killed))
		must(t, f.Ready(killed))
		dial(t, f.Addr(killed)).acquire("door", "HOLDER", fmt.Sprint("back", round))
	}
	slices.Sort(took)
	return took[len(took)/2], took[(len(took)*95+99)/100-1]
}

func TestAnotherNodeGrantsSoonAfterTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	rounds := failoverBrief
	if os.Getenv(timeVariable) != "" {
		rounds = failoverRounds
	}
	p50, p95 := failovers(t, rounds)
	t.Logf("acquire after the leader was killed, %d times: p50 %v, p95 %v (goal: %v)", rounds, p50, p95, failoverGoal)
	if p95 > failoverLimit {
		t.Errorf("p95: got %v, want at most %v", p95, failoverLimit)
	}
}

func BenchmarkAcquireAfterTheLeaderIsKilled(b *testing.B) {
	for b.Loop() {
		p50, p95 := failovers(b, failoverRounds)
		b.ReportMetric(p50.Seconds()*1000, "p50-ms")
		b.ReportMetric(p95.Seconds()*1000, "p95-ms")
		b.ReportMetric(failoverGoal.Seconds()*1000, "goal-p95-ms")
	}
}

// A leader is stopped, another one takes over and moves things on; then the first one wakes up, finds
// requests that were sent to it meanwhile, and leases whose end, by what it knows, has passed.
func TestAStoppedLeaderThatWakesUpNeitherGrantsNorExpires(t *testing.T) {
	t.Parallel()
	f := open(t, 3)
	old := leader(t, f)
	_, term := f.Leader()
	c, atOld := dial(t, f.Addr(others(f, old)[0])), dial(t, f.Addr(old))
	for _, key := range []string{"renewed", "passed on", "taken"} {
		c.want("OK", "SEM.CREATE", key, 1)
	}
	const lease = 8 * time.Second // time enough to elect another leader and renew
	renewed := c.acquire("renewed", "HOLDER", "a", "LEASE", lease.Milliseconds())
	passedOn := c.acquire("passed on", "HOLDER", "a", "LEASE", lease.Milliseconds())

	f.Pause(old)
	atOld.start("SEM.ACQUIRE", "taken", "HOLDER", "late", "LEASE", 60_000)
	atOld.start("SEM.CHECK", "renewed", "a", renewed.token)
	atOld.start("SEM.RELEASE", "passed on", "a", "TOKEN", passedOn.token)
	_, err := f.AwaitLeader(term)
	must(t, err)
	c.want(60_000, "SEM.RENEW", "renewed", "a", "LEASE", 60_000)
	c.want(1, "SEM.RELEASE", "passed on", "a")
	successor := c.acquire("passed on", "HOLDER", "b", "LEASE", 60_000)
	taken := c.acquire("taken", "HOLDER", "b", "LEASE", 60_000)
	<-time.After(lease)
	f.Resume(old)

	if got := atOld.reply(); got != nil {
		t.Errorf("acquire through the former leader: got %v, want null, since another holds it", got)
	}
	if got := atOld.reply(); got != int64(1) {
		t.Errorf("check through the former leader: got %v, want 1, since it was renewed", got)
	}
	if got := atOld.reply(); got != int64(0) {
		t.Errorf("release through the former leader: got %v, want 0, since another holds it", got)
	}
	for i := 1; i <= f.Size(); i++ {
		at := dial(t, f.Addr(i))
		at.want(1, "SEM.CHECK", "renewed", "a", renewed.token)
		at.want(1, "SEM.CHECK", "passed on", "b", successor.token)
		at.want(1, "SEM.CHECK", "taken", "b", taken.token)
	}
}

func TestALeaderInTheMinorityGrantsNothing(t *testing.T) {
	for name, rule := range map[string]proxy.Rule{"silence": {Hold: true}, "resets": {Cut: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, 3)
			old := leader(t, f)
			_, term := f.Leader()
			c, atOld := dial(t, f.Addr(others(f, old)[0])), dial(t, f.Addr(old))
			c.want("OK", "SEM.CREATE", "door", 1)

			f.Net.Set(rule, proxy.Apart(3, old)...)
			atOld.start("SEM.ACQUIRE", "door", "HOLDER", "minority", "LEASE", 60_000)
			trial.Await(t, func() error { return leadsAmong(f, others(f, old), term) })
			g := c.acquire("door", "HOLDER", "majority", "LEASE", 60_000)
			f.Net.Heal()

			if got, err := asGrant(atOld.reply()); err == nil {
				t.Errorf("in the minority: got %+v, want no grant", got)
			}
			atOld.want(1, "SEM.CHECK", "door", "majority", g.token)
			atOld.want(0, "SEM.RELEASE", "door", "minority")
		})
	}
}

// leadsAmong reports, by no error, that one of these nodes leads in a term above this one.
func leadsAmong(f *fleet.Fleet, nodes []int, above int64) error {
	for _, i := range nodes {
		if role, term, err := fleet.Role(f.Addr(i)); err == nil && role == "leader" && term > above {
			return nil
		}
	}
	return fmt.Errorf("none of nodes %v leads in a term above %d", nodes, above)
}

// Leadership moves every two seconds while the lease of a dead holder runs.
func TestALeaseOutlivesChangesOfLeader(t *testing.T) {
	t.Parallel()
	f := open(t, 3)
	c := dial(t, f.Addr(1))
	c.want("OK", "SEM.CREATE", "door", 1)
	const lease, moveEvery = 10 * time.Second, 2 * time.Second
	began := time.Now()
	c.acquire("door", "HOLDER", "dead", "LEASE", lease.Milliseconds())
	c.start("SEM.ACQUIRE", "door", "HOLDER", "next", "WAIT", 60_000)

	changes := 0
	granted := make(chan error, 1)
	go func() { _, err := asGrant(c.reply()); granted <- err }()
	for moving := true; moving; {
		select {
		case err := <-granted:
			must(t, err)
			moving = false
		case <-time.After(moveEvery):
			must(t, f.Transfer())
			changes++
		}
	}

	took := time.Since(began)
	t.Logf("a lease of %v ended after %v, with %d changes of leader", lease, took, changes)
	if least := lease - lease/100; took < least {
		t.Errorf("ended after %v, want at least %v", took, least)
	}
	if most := lease + lease/100 + time.Duration(changes)*2*time.Second + slack; took > most {
		t.Errorf("ended after %v, want at most %v", took, most)
	}
}
