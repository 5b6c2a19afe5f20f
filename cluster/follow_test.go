package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/semaphore"
)

func TestEntryThatRaftRefusedIsProposedAgain(t *testing.T) {
	for _, refusal := range []error{raft.ErrEnqueueTimeout, raft.ErrLeadershipTransferInProgress, raft.ErrNotLeader} {
		t.Run(refusal.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *manual) {
				c.capacity(1)
				c.hold()
				replies := c.ask(forHolder("h", 0))
				c.fail(c.next(), refusal)
				nothing(t, replies)
				c.release() // the same term goes on
				if g := c.granted((<-replies)[0]); g.Replayed {
					t.Error("granted twice, want once")
				}
				c.want("in the end", 1, 0, 0)
			})
		})
	}
}

func TestClientOfARefusedEntryIsToldThatNothingWasAppliedWhenNoLeaderComes(t *testing.T) {
	refuse := func(err error) func(*manual) { return func(c *manual) { c.fail(c.next(), err) } }
	for name, refused := range map[string]func(*manual){
		"no room in Raft's queue": refuse(raft.ErrEnqueueTimeout),
		"leadership on the move":  refuse(raft.ErrLeadershipTransferInProgress),
		"not the leader":          refuse(raft.ErrNotLeader),
		"void":                    (*manual).void,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *manual) {
				c.capacity(1)
				c.hold()
				replies := c.ask(forHolder("h", 0))
				c.leads.Store(false)
				refused(c)
				if got := (<-replies)[0].Err; !errors.Is(got, semaphore.ErrDown) {
					t.Errorf("told %v, want %v", got, semaphore.ErrDown)
				}
				c.release()
				c.elect()
				c.want("in the end", 0, 0, 0)
			})
		})
	}
}

// Between the node's look at the term and Raft's the term may change: the state machine voids the entry.
func TestEntryThatIsVoidIsProposedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.hold()
		replies := c.ask(forHolder("h", 0))
		c.void()
		nothing(t, replies)
		c.release()
		if g := c.granted((<-replies)[0]); g.Replayed {
			t.Error("granted twice, want once")
		}
	})
}

func TestOpenThatRaftRefusedIsProposedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.restart()
		c.hold()
		c.elect()
		c.fail(c.next(), raft.ErrEnqueueTimeout)
		c.release()
		c.want("in the end", 0, 0, 0)
	})
}

// unresolved returns a node of which nobody knows whether its last entry, a request of "h", is going
// to be in the log.
func unresolved(t *testing.T, test func(t *testing.T, c *manual, lost *manualEntry, replies <-chan []semaphore.Reply)) {
	inBubble(t, func(t *testing.T, c *manual) {
		c.capacity(1)
		c.hold()
		replies := c.ask(forHolder("h", 0))
		lost := c.next()
		c.lose(lost)
		time.Sleep(time.Second)
		nothing(t, replies)
		if queued, flying := c.node.queue.lengths(); queued != 0 || flying != 0 {
			t.Errorf("%d requests queued and %d entries in flight, want none: the outcome is open", queued, flying)
		}
		test(t, c, lost, replies)
	})
}

func TestEntryOfALostLeadershipIsAnsweredWhenItIsAppliedAfterAll(t *testing.T) {
	unresolved(t, func(t *testing.T, c *manual, lost *manualEntry, replies <-chan []semaphore.Reply) {
		c.arrive(lost)
		g := c.granted((<-replies)[0])
		c.release()
		c.elect()
		if again := c.grant("h"); again.Token != g.Token || g.Replayed {
			t.Errorf("granted %+v and then %+v, want one grant", g, again)
		}
		time.Sleep(time.Minute)
		c.want("in the end", 1, 0, 0)
	})
}

func TestEntryOfALostLeadershipIsProposedAgainBehindTheNextOpen(t *testing.T) {
	unresolved(t, func(t *testing.T, c *manual, _ *manualEntry, replies <-chan []semaphore.Reply) {
		c.elect()
		nothing(t, replies)
		c.succeed() // the Open
		c.release()
		if g := c.granted((<-replies)[0]); g.Replayed {
			t.Error("granted twice, want once")
		}
		c.want("in the end", 1, 0, 0)
	})
}

func TestEntryOfALostLeadershipIsUncertainWhenTheLogDoesNotTellInTime(t *testing.T) {
	unresolved(t, func(t *testing.T, c *manual, _ *manualEntry, replies <-chan []semaphore.Reply) {
		if got := (<-replies)[0].Err; !errors.Is(got, semaphore.Uncertain("h")) {
			t.Errorf("told %v, want UNCERTAIN", got)
		}
		c.release()
		c.elect()
		time.Sleep(time.Minute)
		c.want("in the end", 0, 0, 0)
	})
}

// What a node asks for itself has no client who would ask again.
func TestLeaveAndGiveBackSurviveALostLeadership(t *testing.T) {
	lose := func(c *manual) {
		c.lose(c.next())
		time.Sleep(2 * c.cfg.Hold) // nobody waits for an answer, so there is no time for one
		c.release()
		c.elect()
	}
	t.Run("leave", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *manual) {
			c.capacity(1)
			c.grant("a")
			w := c.line("b")
			c.hold()
			w.Leave()
			lose(c)
			if reply := <-w.Done; reply.Err != nil || reply.Value != nil {
				t.Errorf("got %v, want no permit", reply)
			}
			c.want("in the end", 1, 0, 0)
		})
	})
	t.Run("give back", func(t *testing.T) {
		inBubble(t, func(t *testing.T, c *manual) {
			c.capacity(1)
			g := c.grant("a")
			c.hold()
			c.node.GiveBack("k", g)
			lose(c)
			c.want("in the end", 0, 0, 0)
		})
	})
}
