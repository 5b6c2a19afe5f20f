package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func TestEntryIsWrittenEverySecondWhileAnythingHasADeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("a")
		began := time.Now()
		const span = 30 * time.Second
		time.Sleep(span)
		entries := c.entries(began)
		last := began
		for _, at := range append(entries, time.Now()) {
			if gap := at.Sub(last); gap > beatEvery {
				t.Errorf("no entry for %v, want one every %v", gap, beatEvery)
			}
			last = at
		}
		if most := int(span/beatEvery) + 1; len(entries) > most {
			t.Errorf("%d entries in %v, want at most %d", len(entries), span, most)
		}
	})
}

func TestNoEntryIsWrittenWhileNothingHasADeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		began := time.Now()
		time.Sleep(time.Hour)
		c.do(semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: semaphore.Persist})
		time.Sleep(time.Hour)
		if n := len(c.entries(began)); n != 1 {
			t.Errorf("%d entries in two hours, want the one of the request", n)
		}
	})
}

func TestWhatFallsDueBetweenTwoBeatsIsDoneOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		const lease = 2500 * time.Millisecond
		c.do(semaphore.Acquire{Key: "k", Holder: "a", Permits: 1, Lease: lease})
		began := time.Now()
		w := c.line("b")
		time.Sleep(lease - time.Millisecond)
		nothing(t, w.Done)
		c.granted(<-w.Done)
		if took := time.Since(began); took > lease+tickEvery+time.Millisecond {
			t.Errorf("granted after %v, want when the lease of %v is over", took, lease)
		}
	})
}

func TestManyDeadlinesShareAnEntry(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		const leases, apart = 100, time.Millisecond
		c.capacity(leases)
		for i := range leases {
			c.do(semaphore.Acquire{Key: "k", Holder: fmt.Sprint(i), Permits: 1, Lease: 500*time.Millisecond + time.Duration(i)*apart})
		}
		began := time.Now()
		c.hold()
		time.Sleep(apart / 2)
		for time.Since(began) < time.Second { // to write an entry takes longer than until the next deadline
			time.Sleep(2 * apart)
			c.flush()
		}
		c.release()
		if n, most := len(c.entries(began)), int(leases*apart/tickEvery)+1; n > most {
			t.Errorf("%d entries for %d deadlines that are %v apart, want at most %d", n, leases, apart, most)
		}
		if left := c.node.machine.published.Load().stats.Holders; left != 0 {
			t.Errorf("%d leases are still in the books, want 0", left)
		}
	})
}

// More falls due in one moment than one entry may process: the entries for the rest follow at once.
func TestBacklogOfWhatFellDueIsProcessedWithoutAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		const rounds = 40
		c.capacity(rounds * semaphore.MaxRun)
		began := time.Now()
		for round := range rounds {
			requests := make([]semaphore.Request, semaphore.MaxRun)
			for i := range requests {
				requests[i] = semaphore.Acquire{Key: "k", Holder: fmt.Sprint(round, i), Permits: 1, Lease: time.Second}
			}
			<-c.ask(requests...)
		}
		time.Sleep(time.Second - tickEvery - time.Since(began))
		before := time.Now()
		time.Sleep(2 * tickEvery)
		if left := c.node.machine.published.Load().stats.Holders; left != 0 {
			t.Errorf("%d of %d leases are still in the books, want 0", left, rounds*semaphore.MaxRun)
		}
		if n := len(c.entries(before)); n < 2 {
			t.Errorf("%d entries did it, want several: else this test shows nothing", n)
		}
	})
}

func TestNodeThatRegainsLeadershipWhileNobodyAsksBecomesReady(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.elect()
		time.Sleep(beatEvery)
		if err := c.node.Ready(); err != nil {
			t.Errorf("got %v, want that it is ready", err)
		}
	})
}
