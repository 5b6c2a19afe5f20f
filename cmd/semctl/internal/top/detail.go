package top

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// soon is what is left of a lease that is shown as a warning.
const soon = 5 * time.Second

// detailView draws one semaphore on that many lines: its figures, its holders, its line.
func (m *Model) detailView(lines int) []string {
	o := m.open
	out := m.figures()
	switch {
	case o.gone != nil:
		out = append(out, bad(reason(o.gone)))
	case !o.known:
		return append(out, dim("looking …"))
	}
	rest := max(4, lines-len(out))
	// The line gets what it needs, up to half.
	waiters := min(len(o.detail.Waiters)+1, rest/2)
	if len(o.detail.Waiters) == 0 {
		waiters = 1
	}
	out = append(out, m.holders(rest-waiters)...)
	return append(out, m.waiters(waiters)...)
}

func reason(err error) string {
	var refused *remote.Refusal
	if errors.As(err, &refused) && refused.Code == "NOSEM" {
		return "It has been deleted."
	}
	return visible(err.Error())
}

// figures are the lines above the lists.
func (m *Model) figures() []string {
	title := strong(visible(m.open.key))
	for _, s := range m.look.Semaphores {
		if s.Name != m.open.key {
			continue
		}
		f := s.Settings
		facts := []string{
			fmt.Sprintf("%d available", s.Available), fmt.Sprintf("%d waiting", s.Waiters),
			fmt.Sprintf("%d granted", s.totals.grants), fmt.Sprintf("%d expired", s.totals.expirations),
		}
		if s.Excess > 0 {
			facts = append(facts, bad(fmt.Sprintf("%d held beyond the capacity", s.Excess)))
		}
		var settings []string
		for _, name := range []string{"lease", "maxlease", "maxhold", "quarantine", "idle"} {
			if n := f.Number(name); n >= 0 {
				settings = append(settings, name+" "+span(time.Duration(n)*time.Millisecond))
			}
		}
		return []string{title + "  " + useCell(s) + "  " + strings.Join(facts, ", "), dim(strings.Join(settings, ", "))}
	}
	return []string{title, ""}
}

func (m *Model) holders(lines int) []string {
	o := m.open
	o.holders.settle(o.holderIDs())
	g := newGrid([]column{
		{title: fmt.Sprintf("HOLDER (%d)", len(o.detail.Holders))}, {title: "SLOT", width: 6, right: true}, {title: "PERMITS", width: 7, right: true},
		{title: "LEASE ENDS", width: 10, right: true}, {title: "HELD", width: 8, right: true}, {title: "CLIENT", share: 1},
	}, m.width)
	out := []string{g.head()}
	first, last := o.holders.window(len(o.detail.Holders), lines-1)
	for i := first; i < last; i++ {
		h := o.detail.Holders[i]
		ends := "never"
		if h.Remaining != remote.Forever {
			ends = warn(span(h.Remaining), h.Remaining < soon)
		}
		out = append(out, g.row(i == o.holders.index && !o.inWaiters,
			visible(h.Holder), number(h.Slot), number(h.Permits), ends, span(h.Held), visible(h.Client)))
	}
	for len(out) < lines {
		out = append(out, "")
	}
	return out
}

func (m *Model) waiters(lines int) []string {
	o := m.open
	o.waiters.settle(o.waiterIDs())
	if len(o.detail.Waiters) == 0 {
		return []string{dim("Nobody waits.")}
	}
	g := newGrid([]column{
		{title: fmt.Sprintf("WAITER (%d)", len(o.detail.Waiters))}, {title: "PLACE", width: 6, right: true}, {title: "PERMITS", width: 7, right: true},
		{title: "WAITED", width: 10, right: true}, {title: "GIVES UP", width: 8, right: true}, {title: "CLIENT", share: 1},
	}, m.width)
	out := []string{g.head()}
	first, last := o.waiters.window(len(o.detail.Waiters), lines-1)
	for i := first; i < last; i++ {
		w := o.detail.Waiters[i]
		out = append(out, g.row(i == o.waiters.index && o.inWaiters,
			visible(w.Holder), number(int64(i+1)), number(w.Permits), span(w.Waited), span(w.Remaining), visible(w.Client)))
	}
	return out
}
