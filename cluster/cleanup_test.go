package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// From the start of a grace, justBefore and justAfter lead to either side of its end. A moment is what
// may pass until the node has seen that it leads, and written what follows from that.
const (
	moment     = 2 * leaderPoll
	justBefore = 5*time.Second - moment // of the default grace
	justAfter  = 2 * moment
)

func TestGrantThatNobodyRepeatsAfterUncertainIsGivenBackAfterTheGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.uncertain(forHolder("h", 0))
		time.Sleep(justBefore)
		c.want("within the grace", 1, 0, 0)
		time.Sleep(justAfter)
		c.want("after the grace", 0, 0, 0)
	})
}

func TestGrantThatItsHolderRepeatsAfterUncertainStays(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.uncertain(forHolder("h", 0))
		time.Sleep(justBefore)
		if g := c.grant("h"); !g.Replayed {
			t.Errorf("the repeat got %+v, want the grant that was decided before", g)
		}
		time.Sleep(time.Minute)
		c.want("after the grace", 1, 0, 0)
	})
}

func TestGrantThatWasToldBeforeStaysWhenItsRepeatIsUncertain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("h")
		c.uncertain(forHolder("h", 0))
		time.Sleep(time.Minute)
		c.want("after the grace", 1, 0, 0)
	})
}

// inLineAfterUncertain returns a node where "a" has the permit, and "h" stands in line although it
// was told UNCERTAIN: in a pipeline, a caller is told by the end of the hold, whatever its WAIT.
func inLineAfterUncertain(t *testing.T, test func(*testing.T, *manual)) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.grant("a")
		c.uncertain(semaphore.Release{Key: "k", Holder: "nobody"}, forHolder("h", time.Minute))
		test(t, c)
	})
}

func TestPlaceInLineThatNobodyRepeatsAfterUncertainIsLeftAfterTheGrace(t *testing.T) {
	inLineAfterUncertain(t, func(t *testing.T, c *manual) {
		time.Sleep(justBefore)
		c.want("within the grace", 1, 1, 0)
		time.Sleep(justAfter)
		c.want("after the grace", 1, 0, 0)
		if n := c.node.waits.length(); n != 0 {
			t.Errorf("the node looks after %d waits, want 0", n)
		}
	})
}

func TestPlaceInLineThatItsHolderRepeatsAfterUncertainIsKept(t *testing.T) {
	inLineAfterUncertain(t, func(t *testing.T, c *manual) {
		time.Sleep(justBefore - moment)
		c.line("later")
		h := c.line("h")
		time.Sleep(10 * time.Second)
		c.want("after the grace", 1, 2, 0)
		c.do(semaphore.Release{Key: "k", Holder: "a"})
		synctest.Wait()
		if g := c.granted(<-h.Done); g.Holder != "h" {
			t.Errorf("granted to %s, want h", g.Holder)
		}
		time.Sleep(10 * time.Second)
		c.want("long after the grant", 1, 1, 0)
	})
}

func TestGrantToAPlaceAfterUncertainIsGivenBackAfterItsOwnGrace(t *testing.T) {
	inLineAfterUncertain(t, func(t *testing.T, c *manual) {
		time.Sleep(time.Second)
		c.do(semaphore.Release{Key: "k", Holder: "a"})
		time.Sleep(justBefore)
		c.want("within the grace", 1, 0, 0)
		time.Sleep(justAfter)
		c.want("after the grace", 0, 0, 0)
	})
}
