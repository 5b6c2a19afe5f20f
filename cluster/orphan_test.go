package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/semaphore"
)

// orphaned returns a node where "a" has the permit, and "first" and "second" stand in line, who came
// through a process that is gone.
func orphaned(t *testing.T, test func(*testing.T, *manual)) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("a")
		c.line("first")
		c.line("second")
		c.restart()
		c.elect()
		test(t, c)
	})
}

func TestWaitersOfAProcessThatIsGoneKeepTheirPlacesForTheGrace(t *testing.T) {
	orphaned(t, func(t *testing.T, c *manual) {
		if got := c.node.machine.published.Load().stats.Orphans; got != 2 {
			t.Fatalf("%d orphans before anybody asks for anything, want 2", got)
		}
		time.Sleep(justBefore)
		c.want("within the grace", 1, 2, 2)
		time.Sleep(justAfter)
		c.want("after the grace", 1, 0, 0)
	})
}

func TestWaiterWhoComesBackWithinTheGraceStandsWhereItStood(t *testing.T) {
	orphaned(t, func(t *testing.T, c *manual) {
		c.line("third")
		time.Sleep(justBefore - moment)
		second := c.line("second")
		c.want("within the grace", 1, 3, 1)
		time.Sleep(justAfter + moment)
		c.want("after the grace", 1, 2, 0)
		c.do(semaphore.Release{Key: "k", Holder: "a"})
		synctest.Wait()
		if g := c.granted(<-second.Done); g.Holder != "second" {
			t.Errorf("granted to %s, want second", g.Holder)
		}
		time.Sleep(10 * time.Second)
		c.want("long after the grant", 1, 1, 0)
	})
}

func TestWaitersOfALivingProcessStayWhoeverLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("a")
		w := c.line("b")
		c.elect()
		c.want("after the change", 1, 1, 0)
		time.Sleep(10 * time.Second)
		c.do(semaphore.Release{Key: "k", Holder: "a"})
		c.granted(<-w.Done)
	})
}

// Nobody can come back under an id that nobody was told.
func TestWaiterWithAMadeIDLeavesAtOnceWhenItsProcessIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("a")
		made := forHolder("made", time.Minute)
		made.Made = true
		c.do(made)
		c.line("given")
		c.restart()
		c.elect()
		c.want("at first", 1, 1, 1)
	})
}

func TestGrantDecidedForAnOrphanIsGivenBackAtTheEndOfTheGrace(t *testing.T) {
	orphaned(t, func(t *testing.T, c *manual) {
		third := c.line("third")
		c.do(semaphore.Release{Key: "k", Holder: "a"})
		time.Sleep(justBefore)
		c.want("within the grace", 1, 2, 1)
		nothing(t, third.Done)
		time.Sleep(justAfter)
		if g := c.granted(<-third.Done); g.Holder != "third" {
			t.Errorf("granted to %s, want third", g.Holder)
		}
		c.want("after the grace", 1, 0, 0)
	})
}

func TestGrantDecidedForAnOrphanStaysWhenItsHolderComesBack(t *testing.T) {
	orphaned(t, func(t *testing.T, c *manual) {
		c.do(semaphore.Release{Key: "k", Holder: "a"})
		time.Sleep(justBefore - moment)
		if g := c.grant("first"); !g.Replayed {
			t.Errorf("the repeat got %+v, want the grant that was decided before", g)
		}
		time.Sleep(time.Minute)
		c.want("after the grace", 1, 0, 0)
	})
}

// The entry that marks the waiters is refused in a term that goes on: they are marked all the same.
func TestLossOfAProcessIsWrittenAgainWhenItsEntryIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("a")
		c.line("first")
		c.restart()
		c.hold()
		c.elect()
		c.succeed() // the Open
		c.fail(c.next(), raft.ErrEnqueueTimeout)
		c.release()
		c.want("at first", 1, 1, 1)
		time.Sleep(justBefore + justAfter)
		c.want("after the grace", 1, 0, 0)
	})
}
