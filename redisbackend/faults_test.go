package redisbackend

import (
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func TestAGrantWhoseReplyWasLostIsFoundAgain(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		for _, f := range []fault{lostReply, lostCall, lateCall} {
			b.books.set(once(f))
			g := b.grant("a")
			if g.Replayed {
				t.Errorf("fault %d: got a replayed grant, want the request's own", f)
			}
			b.held(1)
			b.books.set(once(f))
			b.release("a") // answered 1, although it may have taken effect the first time
			b.held(0)
		}
	})
}

func TestAHandOverWhoseReplyWasLostReachesTheWaiter(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		for _, f := range []fault{lostReply, lostCall, lateCall} {
			b.grant("a")
			first, second := b.wait(b.ask("b", time.Hour)), b.wait(b.ask("c", time.Hour))
			b.books.set(once(f))
			b.release("a")
			b.granted(b.reply(first))
			b.unanswered(second)
			b.held(1)
			b.release("b")
			b.granted(b.reply(second))
			b.release("c")
		}
	})
}

func TestWhoLeavesWhileTheOutcomeIsUnknownLeavesNothingBehind(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		for _, f := range []fault{lostReply, lostCall, lateCall} {
			b.grant("a")
			w := b.wait(b.ask("b", time.Hour))
			b.books.set(once(f))
			released := make(chan semaphore.Reply, 1)
			go func() { released <- b.do(semaphore.Release{Key: testKey, Holder: "a"}) }()
			time.Sleep(restFor / 2)
			w.Leave()
			b.unanswered(w)
			b.none(<-w.Done)
			<-released
			b.held(0)
		}
	})
}

func TestWhoWaitsStaysInLineWhileRedisIsAway(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		long, brief := b.wait(b.ask("b", time.Hour)), b.wait(b.ask("c", 20*time.Second))
		b.books.set(always(refused))
		began := time.Now()
		b.none(<-brief.Done)
		if got := time.Since(began); got < 19*time.Second || got > 21*time.Second {
			t.Errorf("null after %v, want after 20s", got)
		}
		b.unanswered(long)
		b.books.set(nil)
		b.release("a")
		b.granted(b.reply(long))
	})
}

func TestNobodyIsHeldForLongWhileRedisIsAway(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.books.set(always(refused))
		began := time.Now()
		b.refused(b.do(b.ask("a", 0)), semaphore.CodeDown)
		if got := time.Since(began); got < 5*time.Second || got > 6*time.Second {
			t.Errorf("told after %v, want after the hold of 5s", got)
		}
		began = time.Now()
		w := b.wait(b.ask("b", 20*time.Second))
		if got := time.Since(began); got > time.Second {
			t.Errorf("in line after %v, want at once", got)
		}
		b.refused(<-w.Done, semaphore.CodeDown)
		left := b.wait(b.ask("c", time.Hour))
		left.Leave()
		b.none(b.reply(left))
		b.books.set(nil)
		b.held(0)
	})
}

func TestWhatCannotBeLearntInTimeIsUncertainAndGivenBack(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		lostThenDown := func(calls int) fault {
			if calls == 1 {
				return lostReply
			}
			return refused
		}
		b.books.set(lostThenDown)
		b.refused(b.do(b.ask("a", 0)), semaphore.CodeUncertain)
		b.books.set(nil)
		time.Sleep(time.Second)
		b.held(0)

		b.grant("a")
		w := b.wait(b.ask("b", 3*time.Second))
		b.books.set(lostThenDown)
		began := time.Now()
		go b.do(semaphore.Release{Key: testKey, Holder: "a"})
		b.refused(<-w.Done, semaphore.CodeUncertain)
		if got := time.Since(began); got < 3*time.Second || got > 4*time.Second {
			t.Errorf("told after %v, want within a second after the WAIT of 3s", got)
		}
		time.Sleep(5 * time.Second)
		b.books.set(nil)
		time.Sleep(time.Second)
		b.held(0)
	})
}

func TestCallsThatCameTooLateAreMadeAgain(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.books.latency = 2 * leastWindow
		go func() {
			time.Sleep(3 * leastWindow)
			b.books.mu.Lock()
			defer b.books.mu.Unlock()
			b.books.latency = time.Millisecond
		}()
		b.grant("a")
		b.held(1)
	})
}

func TestQuitAnswersAtOnce(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		w := b.wait(b.ask("b", time.Hour))
		w.Quit()
		b.none(b.reply(w))

		w = b.wait(b.ask("b", time.Hour))
		b.books.set(once(lostReply))
		go b.do(semaphore.Release{Key: testKey, Holder: "a"})
		time.Sleep(restFor / 2)
		w.Quit()
		b.refused(b.reply(w), semaphore.CodeUncertain)
		time.Sleep(2 * time.Second)
		b.held(0)
	})
}

func TestCloseAnswersEverybody(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		w := b.wait(b.ask("b", time.Hour))
		b.books.set(always(refused))
		told := make(chan semaphore.Reply, 1)
		go func() { told <- b.do(b.ask("c", 0)) }()
		time.Sleep(time.Second)
		b.close()
		b.none(b.reply(w))
		b.none(<-told) // Redis came back while it was closing
		b.refused(b.do(b.ask("d", 0)), semaphore.CodeShutdown)
	})
}

func TestCancelOfWhoMayHaveBeenServedGivesBackFirst(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		for _, f := range []fault{lostReply, lostCall, lateCall} {
			short := b.ask("a", 0)
			short.Lease = 300 * time.Millisecond
			b.granted(b.do(short))
			w := b.wait(b.ask("b", time.Hour))
			b.books.set(once(f)) // the call at the end of the lease
			time.Sleep(short.Lease - soon + restFor/2)
			if r := b.do(semaphore.Cancel{Key: testKey, Holder: "b"}); r.Value != semaphore.Number(1) {
				t.Errorf("fault %d: cancel: got %v, %v, want 1", f, r.Value, r.Err)
			}
			b.none(b.reply(w))
			b.held(0)
		}
	})
}

func TestWhatRedisRefusesIsToldAndDisturbsNobodyElse(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		w := b.wait(b.ask("b", time.Hour))
		b.books.set(always(forbidden))
		b.refused(b.do(b.ask("c", 0)), semaphore.CodeBackend)
		b.refused(b.do(semaphore.Release{Key: testKey, Holder: "a"}), semaphore.CodeBackend)
		time.Sleep(20 * time.Second)
		b.unanswered(w)
		b.books.set(nil)
		b.release("a")
		b.granted(b.reply(w))
	})
}

func TestWhatRedisNeverLetsUsGiveBackIsGivenUp(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		g := b.grant("a")
		b.books.set(always(forbidden))
		b.core.giveBack(testKey, g)
		time.Sleep(2 * undoFor)
		before := b.books.number()
		time.Sleep(time.Minute)
		if got := b.books.number() - before; got != 0 {
			t.Errorf("calls after it was given up: got %d, want none", got)
		}
	})
}
