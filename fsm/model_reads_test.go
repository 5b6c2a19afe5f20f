package fsm

import (
	"time"

	"github.com/semserver/semserver/semaphore"
)

func (m *model) scan(q semaphore.Scan) semaphore.Reply {
	page := &semaphore.KeyPage{}
	last := uint64(0)
	for _, s := range m.sems {
		switch {
		case uint64(s.id) <= q.Cursor:
		case len(page.Keys) == q.Count:
			page.Next = last
		default:
			last = uint64(s.id)
			page.Keys = append(page.Keys, s.name)
		}
	}
	return semaphore.Reply{Value: page}
}

func (m *model) list(s *modelSem, q semaphore.Request) semaphore.Reply {
	switch q := q.(type) {
	case semaphore.Holders:
		page := &semaphore.HolderPage{}
		for _, g := range s.grants {
			switch {
			case uint64(g.token) <= q.Cursor:
			case len(page.Rows) == q.Count:
				page.Next = uint64(page.Rows[q.Count-1].Token)
			default:
				page.Rows = append(page.Rows, semaphore.HolderRow{
					Holder: g.holder, Token: g.token, Slot: g.slots[0], Permits: int64(len(g.slots)), Client: g.label,
					Remaining: m.left(g.end), Held: time.Duration(m.now-g.granted) * time.Microsecond,
				})
			}
		}
		return semaphore.Reply{Value: page}
	case semaphore.Waiters:
		return semaphore.Reply{Value: m.listLine(s, q)}
	}
	return semaphore.Reply{Value: m.info(s)}
}

func (m *model) listLine(s *modelSem, q semaphore.Waiters) *semaphore.WaiterPage {
	page := &semaphore.WaiterPage{}
	last := uint64(0)
	for _, w := range s.line {
		end := w.end
		if w.grace != 0 {
			end = min(end, w.grace)
		}
		switch {
		case w.seq <= q.Cursor:
		case len(page.Rows) == q.Count:
			page.Next = last
		default:
			last = w.seq
			page.Rows = append(page.Rows, semaphore.WaiterRow{
				Holder: w.holder, Permits: w.permits, Client: w.label, Remaining: m.left(end),
				Waited: time.Duration(m.now-w.joined) * time.Microsecond,
			})
		}
	}
	return page
}

func (m *model) info(s *modelSem) *semaphore.Info {
	info := &semaphore.Info{
		Name: s.name, Usage: s.usage(), Holders: int64(len(s.grants)), Waiters: int64(len(s.line)),
		LastToken: s.last, Settings: s.set, Counters: s.counters, Rows: s.capacity,
	}
	info.Excess = max(0, info.InUse-info.Capacity)
	info.Quarantined = int64(len(s.taken())) - info.InUse
	for _, slot := range s.taken() {
		info.Rows = max(info.Rows, slot+1)
	}
	next := int64(-1)
	for _, g := range s.grants {
		end := g.end
		if g.undo != 0 && (end < 0 || g.undo < end) {
			end = g.undo
		}
		if end >= 0 && (next < 0 || end < next) {
			next = end
		}
	}
	if next >= 0 {
		info.NextExpiry = semaphore.Set(m.left(next))
	}
	for i, w := range s.line {
		if i == 0 {
			info.OldestWait = time.Duration(m.now-w.joined) * time.Microsecond
		}
		if w.grace != 0 {
			info.Orphans++
		}
	}
	return info
}
