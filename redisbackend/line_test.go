package redisbackend

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semserver/semserver/semaphore"
)

func TestTheLineIsServedInOrder(t *testing.T) {
	inBubble(t, 3, func(b *bubble) {
		for n := range 3 {
			b.grant(name(n))
		}
		var line []*semaphore.Waiting
		for n := 3; n < 100; n++ {
			line = append(line, b.wait(b.ask(name(n), time.Hour)))
		}
		for n, w := range line {
			b.unanswered(w)
			b.release(name(n))
			b.granted(b.reply(w))
			b.held(3)
		}
	})
}

func TestWhatIsFreedAtOnceServesAsManyAsFit(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		var line []*semaphore.Waiting
		for n := range 1000 {
			line = append(line, b.wait(b.ask(name(n), time.Hour)))
		}
		b.do(semaphore.Resize{Key: testKey, Capacity: 600})
		time.Sleep(100 * time.Millisecond)
		for n, w := range line {
			if n < 600 {
				b.granted(b.reply(w))
			} else {
				b.unanswered(w)
			}
		}
		b.held(600)
	})
}

func TestABigRequestAtTheHeadIsNotOvertaken(t *testing.T) {
	inBubble(t, 3, func(b *bubble) {
		b.grant("a")
		big := b.ask("big", time.Hour)
		big.Permits = 3
		w := b.wait(big)
		small := b.wait(b.ask("small", time.Hour))
		time.Sleep(5 * time.Second)
		b.unanswered(small)
		b.none(b.do(b.ask("now", 0)))

		b.release("a")
		b.granted(b.reply(w))
		b.unanswered(small)
		b.release("big")
		b.granted(b.reply(small))
	})
}

func TestAWaitEndsWhenItsTimeHasPassedAndNotBefore(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		began := time.Now()
		w := b.wait(b.ask("b", 300*time.Millisecond))
		b.none(<-w.Done)
		if got := time.Since(began); got != 300*time.Millisecond {
			t.Errorf("null came after %v, want after 300ms", got)
		}
		b.release("a")
		b.held(0)
		if got := b.books.sems[testKey].timeouts; got != 1 {
			t.Errorf("waits that timed out, as Redis counts: got %d, want 1", got)
		}
	})
}

func TestALeaseThatEndsServesTheLineWithoutTraffic(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		short := b.ask("a", 0)
		short.Lease = 1230 * time.Millisecond
		began := time.Now()
		b.granted(b.do(short))
		w := b.wait(b.ask("b", time.Hour))
		b.granted(<-w.Done)
		if got := time.Since(began); got < short.Lease || got > short.Lease+10*time.Millisecond {
			t.Errorf("granted after %v, want right after the lease of %v", got, short.Lease)
		}
	})
}

func TestARepeatTakesOverThePlace(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		older := b.wait(b.ask("b", time.Hour))
		behind := b.wait(b.ask("c", time.Hour))
		newer := b.wait(b.ask("b", 2*time.Hour))
		b.refused(b.reply(older), semaphore.CodeSuperseded)
		other := b.ask("b", time.Hour)
		other.Permits = 2
		b.refused(b.do(other), semaphore.CodeConflict)
		other.Wait = 0
		b.refused(b.do(other), semaphore.CodeConflict)
		b.none(b.do(b.ask("b", 0)))

		b.release("a")
		b.granted(b.reply(newer))
		b.unanswered(behind)
	})
}

func TestWhoLeavesOrIsCancelledMakesRoom(t *testing.T) {
	inBubble(t, 3, func(b *bubble) {
		b.grant("a")
		big := b.ask("big", time.Hour)
		big.Permits = 3
		first, second := b.wait(big), b.wait(b.ask("b", time.Hour))
		b.unanswered(second)
		if r := b.do(semaphore.Cancel{Key: testKey, Holder: "big"}); r.Value != semaphore.Number(1) {
			t.Fatalf("cancel: got %v, want 1", r.Value)
		}
		b.none(b.reply(first))
		time.Sleep(10 * time.Millisecond)
		b.granted(b.reply(second))

		third := b.wait(func() semaphore.Acquire { big.Holder = "big2"; return big }())
		third.Leave()
		third.Leave()
		b.none(b.reply(third))
		if r := b.do(semaphore.Cancel{Key: testKey, Holder: "big2"}); r.Value != semaphore.Number(0) {
			t.Fatalf("cancel of who left: got %v, want 0", r.Value)
		}
	})
}

func TestALineHasALimit(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.limit(2, 1000)
		b.grant("a")
		first := b.wait(b.ask("b", time.Hour))
		b.wait(b.ask("c", time.Hour))
		b.refused(b.do(b.ask("d", time.Hour)), semaphore.CodeQueueFull)
		b.wait(b.ask("b", time.Hour)) // takes over, and so needs no room
		b.refused(b.reply(first), semaphore.CodeSuperseded)
		if got := b.core.office.waiters.Load(); got != 2 {
			t.Errorf("waiters in all lines: got %d, want 2", got)
		}
		b.limit(10, 2)
		b.refused(b.do(b.ask("e", time.Hour)), semaphore.CodeQueueFull)
	})
}

func TestTheLineIsListedInPages(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		for n := range 10 {
			b.wait(b.ask(name(n), time.Hour))
			time.Sleep(time.Second)
		}
		var got []string
		for cursor := uint64(0); ; {
			page := b.do(semaphore.Waiters{Key: testKey, Cursor: cursor, Count: 3}).Value.(*semaphore.WaiterPage)
			for _, row := range page.Rows {
				got = append(got, row.Holder)
			}
			if cursor = page.Next; cursor == 0 {
				break
			}
		}
		for n := range 10 {
			if len(got) != 10 || got[n] != name(n) {
				t.Fatalf("got %q, want ten in order", got)
			}
		}
	})
}

func TestWhoWantsTooManyIsToldSoWhereverHeStands(t *testing.T) {
	inBubble(t, 4, func(b *bubble) {
		all := b.ask("a", 0)
		all.Permits = 4
		b.granted(b.do(all))
		first := b.wait(b.ask("first", time.Hour))
		all.Holder, all.Wait = "many", time.Hour
		many := b.wait(all)
		b.do(semaphore.Resize{Key: testKey, Capacity: 0}) // a pause
		b.unanswered(many)
		b.do(semaphore.Resize{Key: testKey, Capacity: 3})
		b.refused(b.reply(many), semaphore.CodeTooMany)
		b.unanswered(first)
		b.release("a")
		b.granted(b.reply(first))
	})
}

func TestDeleteEndsTheLine(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		w := b.wait(b.ask("b", time.Hour))
		b.do(semaphore.Delete{Key: testKey, Force: true})
		b.refused(b.reply(w), semaphore.CodeNoSem)
		b.refused(b.do(semaphore.Waiters{Key: testKey, Count: 1}), semaphore.CodeNoSem)
	})
}

func TestWaitersCostNoGoroutines(t *testing.T) {
	inBubble(t, 1, func(b *bubble) {
		b.grant("a")
		before := runtime.NumGoroutine()
		var line []*semaphore.Waiting
		for n := range 2000 {
			line = append(line, b.wait(b.ask(name(n), time.Hour)))
		}
		synctest.Wait()
		if got := runtime.NumGoroutine(); got > before+1 {
			t.Errorf("goroutines: got %d with 2000 waiters, %d before", got, before)
		}
		for _, w := range line {
			w.Leave()
		}
		for _, w := range line {
			b.none(b.reply(w))
		}
		time.Sleep(time.Second)
		desks := make(chan int)
		l := b.core.loop(testKey)
		l.post(func() { desks <- len(l.desks) })
		if got := <-desks; got != 0 {
			t.Errorf("desks when nobody waits: got %d, want 0", got)
		}
	})
}

func TestOneCallServesManyWhoAskMeanwhile(t *testing.T) {
	inBubble(t, 100, func(b *bubble) {
		b.books.set(nil)
		requests := make([]semaphore.Request, 40)
		for n := range requests {
			requests[n] = b.ask(name(n), 0)
		}
		replies := make([]semaphore.Reply, len(requests))
		b.core.do(testKey, requests, replies)
		for _, r := range replies {
			b.granted(r)
		}
		if got := b.books.number(); got != 1 {
			t.Errorf("calls for 40 requests: got %d, want 1", got)
		}
	})
}
