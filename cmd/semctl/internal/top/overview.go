package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// order is what semaphores are sorted by.
type order int

const (
	byUse order = iota // what is nearest to its capacity first, then the longest line
	byWaiters
	byOldestWait
	byGrants
	byName
	orders // how many there are
)

func (o order) key() string { return [...]string{"u", "w", "o", "g", "n"}[o] }

func (o order) title() string {
	return [...]string{"use", "waiters", "oldest wait", "grants", "name"}[o]
}

// compare puts what deserves a look first. Names decide between equals, so that rows stay where they are.
func (o order) compare(a, b Semaphore) int {
	first := 0
	switch o {
	case byUse:
		first = cmp.Or(cmp.Compare(b.use(), a.use()), cmp.Compare(b.Waiters, a.Waiters))
	case byWaiters:
		first = cmp.Compare(b.Waiters, a.Waiters)
	case byOldestWait:
		first = cmp.Compare(b.OldestWait, a.OldestWait)
	case byGrants:
		first = cmp.Compare(b.Since.Grants, a.Since.Grants)
	}
	return cmp.Or(first, strings.Compare(a.Name, b.Name))
}

// use is the share of the capacity that is held or out of circulation: 1 is all of it.
func (s Semaphore) use() float64 {
	taken := s.InUse + s.Quarantined
	switch {
	case s.Capacity > 0:
		return float64(taken) / float64(s.Capacity)
	case taken > 0 || s.Waiters > 0:
		return 1
	}
	return 0
}

// shown are the semaphores that pass the filter, in order.
func (m *Model) shown() []Semaphore {
	var all []Semaphore
	for _, s := range m.look.Semaphores {
		if strings.Contains(strings.ToLower(s.Name), strings.ToLower(m.filter)) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, m.order.compare)
	if m.reversed {
		slices.Reverse(all)
	}
	return all
}

func names(all []Semaphore) []string {
	return idsOf(all, func(s Semaphore) string { return s.Name })
}

// overview draws all semaphores on that many lines.
func (m *Model) overview(lines int) []string {
	shown := m.shown()
	ids := names(shown)
	m.cursor.settle(ids)
	columns := []column{
		{title: "SEMAPHORE"}, {title: "USE", width: barWidth + 1 + 11}, {title: "WAITERS", width: 7, right: true},
		{title: "OLDEST", width: 7, right: true}, {title: "WAIT", width: 7, right: true},
		{title: "GRANTS/S", width: 8, right: true}, {title: "EXPIRED", width: 7, right: true},
	}
	g := newGrid(columns, m.width)
	out := []string{g.head()}
	first, last := m.cursor.window(len(shown), lines-1)
	for i := first; i < last; i++ {
		s := shown[i]
		out = append(out, g.row(i == m.cursor.index,
			visible(s.Name), useCell(s), warn(number(s.Waiters), s.Waiters > 0), wait(s), meanWait(s), rate(s), expired(s)))
	}
	switch {
	case m.look.At.IsZero():
		out = append(out, dim("looking …"))
	case len(shown) == 0 && m.filter != "":
		out = append(out, dim("no semaphore with this in its name"))
	case len(shown) == 0:
		out = append(out, dim("no semaphores"))
	}
	return out
}

func useCell(s Semaphore) string {
	text := fmt.Sprintf("%d/%d", s.InUse, s.Capacity)
	if s.Quarantined > 0 {
		text += fmt.Sprintf("+%dq", s.Quarantined)
	}
	return bar(s.use()) + " " + text
}

func wait(s Semaphore) string {
	if s.Waiters == 0 {
		return dim("-")
	}
	return span(s.OldestWait)
}

func meanWait(s Semaphore) string {
	if s.Since.MeanWait == 0 {
		return dim("-")
	}
	return span(s.Since.MeanWait)
}

func rate(s Semaphore) string {
	if !s.Since.Known {
		return dim("-")
	}
	return fmt.Sprintf("%.1f", s.Since.Grants)
}

// expired is red while leases end that nobody released: holders crash, or are too slow.
func expired(s Semaphore) string {
	return warn(number(s.totals.expirations), s.Since.Expirations > 0)
}
