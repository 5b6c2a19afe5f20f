package semtest

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

func (s *naiveSem) info(now time.Time) *semaphore.Info {
	i := &semaphore.Info{
		Name: s.key, Usage: s.usage(), Quarantined: s.held(s.ended), Rows: s.capacity,
		Holders: int64(len(s.grants)), Waiters: int64(len(s.line)),
		LastToken: s.lastToken, Settings: s.settings, Counters: s.counters,
	}
	i.Excess = max(0, i.InUse-i.Capacity)
	for _, t := range s.taken() {
		i.Rows = max(i.Rows, t.Last+1)
	}
	if len(s.line) > 0 {
		i.OldestWait = now.Sub(s.line[0].since)
	}
	for _, g := range s.grants {
		if left := g.left(now); left != semaphore.Persist && (!i.NextExpiry.Given || left < i.NextExpiry.Value) {
			i.NextExpiry = semaphore.Set(left)
		}
	}
	return i
}

func (s *naiveSem) holders(r semaphore.Holders, now time.Time) *semaphore.HolderPage {
	page := &semaphore.HolderPage{}
	for _, g := range s.grants {
		if uint64(g.Token) <= r.Cursor {
			continue
		}
		if len(page.Rows) == r.Count {
			page.Next = uint64(page.Rows[r.Count-1].Token)
			break
		}
		page.Rows = append(page.Rows, semaphore.HolderRow{
			Holder: g.Holder, Token: g.Token, Slot: g.Slot(), Permits: slotCount(g.Slots),
			Remaining: g.left(now), Held: now.Sub(g.at), Client: g.label,
		})
	}
	return page
}

func (s *naiveSem) waiters(r semaphore.Waiters, now time.Time) *semaphore.WaiterPage {
	page, last := &semaphore.WaiterPage{}, uint64(0)
	for _, w := range s.line {
		if w.id <= r.Cursor {
			continue
		}
		if len(page.Rows) == r.Count {
			page.Next = last
			break
		}
		last = w.id
		page.Rows = append(page.Rows, semaphore.WaiterRow{
			Holder: w.ask.Holder, Permits: w.ask.Permits, Waited: now.Sub(w.since), Remaining: w.end.Sub(now), Client: w.ask.Label,
		})
	}
	return page
}

func (n *naive) scan(r semaphore.Scan) *semaphore.KeyPage {
	page, last := &semaphore.KeyPage{}, uint64(0)
	for _, s := range n.sems {
		if s.id <= r.Cursor {
			continue
		}
		if len(page.Keys) == r.Count {
			page.Next = last
			break
		}
		last = s.id
		page.Keys = append(page.Keys, s.key)
	}
	return page
}
