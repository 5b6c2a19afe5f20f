package script

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// pages lists grants page by page, and what happens in between.
func (r *rig) pages(key string, count int, between func(page int)) (seen map[string]int, pages int) {
	r.Helper()
	seen = map[string]int{}
	for cursor := uint64(0); ; pages++ {
		raw, err := r.send(r.lib.Holders(semaphore.Holders{Key: key, Cursor: cursor, Count: count}))
		if err != nil {
			r.Fatal(err)
		}
		a, err := ReadHolders(raw)
		if err != nil || a.Err != nil {
			r.Fatalf("holders: %v, %v", err, a.Err)
		}
		page := a.Value.(*semaphore.HolderPage)
		for _, row := range page.Rows {
			seen[row.Holder]++
		}
		if cursor = page.Next; cursor == 0 {
			return seen, pages + 1
		}
		between(pages)
	}
}

func TestHoldersAreSeenOnceWhileOthersComeAndGo(t *testing.T) {
	r := newRig(t)
	r.create("k", 300)
	for i := range 100 {
		r.acquire("k", fmt.Sprint("ours", i), time.Minute)
		r.take("k", fmt.Sprint("raw", i), time.Minute)
	}
	seen, pages := r.pages("k", 7, func(page int) {
		r.number(semaphore.Release{Key: "k", Holder: fmt.Sprint("ours", page)})
		r.acquire("k", fmt.Sprint("new", page), time.Minute)
		r.number(semaphore.Renew{Key: "k", Holder: fmt.Sprint("ours", 99-page), Lease: time.Hour})
	})

	if pages < 200/7 {
		t.Errorf("pages: got %d, want at most 7 holders on each", pages)
	}
	for i := pages; i < 100; i++ {
		equal(t, fmt.Sprint("times that ours", i, " was seen"), seen[fmt.Sprint("ours", i)], 1)
	}
	for i := range 100 {
		equal(t, fmt.Sprint("times that raw", i, " was seen"), seen[fmt.Sprint("raw", i)], 1)
	}
}

func TestAllHoldersOfALargeSemaphoreAreSeen(t *testing.T) {
	r := newRig(t)
	const many = 5000
	r.create("k", many)
	for from := 0; from < many; from += 250 {
		s := &Step{}
		for i := range 250 {
			s.Ops = append(s.Ops, Op{Request: semaphore.Acquire{Key: "k", Holder: fmt.Sprint("h", from+i), Permits: 1}})
		}
		r.step("k", s)
	}

	seen, pages := r.pages("k", 100, func(int) {})

	for i := range many {
		if seen[fmt.Sprint("h", i)] != 1 {
			t.Fatalf("h%d: seen %d times, want once", i, seen[fmt.Sprint("h", i)])
		}
	}
	if pages < many/200 {
		t.Errorf("pages: got %d, want about %d", pages, many/100)
	}
}

func TestAnUnknownSemaphoreHasNoHolders(t *testing.T) {
	r := newRig(t)
	raw, err := r.send(r.lib.Holders(semaphore.Holders{Key: "k", Count: 1}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := ReadHolders(raw)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "error", a.Err, error(semaphore.ErrNoSemaphore))
}

func TestWhatExistsThroughoutAScanIsSeenOnce(t *testing.T) {
	r := newRig(t)
	for i := range 60 {
		r.create(fmt.Sprint("k", i), 1)
	}
	seen, cursor, pages := map[string]int{}, uint64(0), 0
	for {
		s := semaphore.Scan{Cursor: cursor, Count: 4}
		raw, err := r.send(r.lib.Scan(s)[0])
		if err != nil {
			t.Fatal(err)
		}
		page, err := r.lib.ReadScan(s, []any{raw})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range page.Keys {
			seen[key]++
		}
		if cursor = page.Next; cursor == 0 {
			break
		}
		r.care(semaphore.Delete{Key: fmt.Sprint("k", pages)})
		r.care(semaphore.Delete{Key: fmt.Sprint("k", 59-pages)})
		r.create(fmt.Sprint("new", pages), 1)
		pages++
	}
	for i := pages; i < 60-pages; i++ {
		equal(t, fmt.Sprint("times that k", i, " was seen"), seen[fmt.Sprint("k", i)], 1)
	}
	for key, n := range seen {
		if n > 1 {
			t.Errorf("%s: seen %d times, want once", key, n)
		}
	}
}

func TestTheRegistryIsMendedByTending(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	r.create("l", 1)
	r.do("DEL", "sem::registry")
	r.do("DEL", "sem:l:meta", "sem:l:permits")
	r.do("ZADD", "sem::registry", 7, "l")

	equal(t, "k is gone", r.tend("k").Gone, false)
	equal(t, "l is gone", r.tend("l").Gone, true)

	equal(t, "names", fmt.Sprint(r.names(5)), "[k]")
}

func TestTendingForgetsServersThatAreNoMore(t *testing.T) {
	r := newRig(t)
	r.create("k", 1)
	var old packed
	old.number(5)
	old.number(r.clock() - (11 * time.Minute).Milliseconds())
	r.do("HSET", "sem:k:meta", "@old", string(old))

	r.tend("k")

	equal(t, "known to have called", r.do("HEXISTS", "sem:k:meta", "@old"), any(int64(0)))
	equal(t, "known to have called", r.do("HEXISTS", "sem:k:meta", "@1"), any(int64(1)))
}
