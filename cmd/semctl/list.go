package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type listCommand struct {
	Pattern string `arg:"" optional:"" default:"*" help:"Only names that match this glob."`
}

func (c *listCommand) Run(ctx context.Context, s *session) error {
	servers := remote.Open(s.servers)
	defer servers.Close()
	l := listing[remote.Fields]{
		object: fieldsObject,
		head:   []string{"NAME", "CAPACITY", "IN USE", "AVAILABLE", "HOLDERS", "WAITERS", "OLDEST WAIT"},
		cells: func(_ int, f remote.Fields) []string {
			return []string{
				visible(f.Text("name")), number(f.Number("capacity")), number(f.Number("in_use")), number(f.Number("available")),
				number(f.Number("holders")), number(f.Number("waiters")), oldestWait(f),
			}
		},
		order: func(a, b remote.Fields) int { return strings.Compare(a.Text("name"), b.Text("name")) },
		none:  "no semaphores",
	}
	return l.print(s, servers.Semaphores(ctx, c.Pattern))
}

func oldestWait(f remote.Fields) string {
	if f.Number("waiters") == 0 {
		return "-"
	}
	return span(ms(f.Number("oldest_wait_ms")))
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

type holdersCommand struct{ keyArgument }

func (c *holdersCommand) Run(ctx context.Context, s *session) error {
	servers := remote.Open(s.servers)
	defer servers.Close()
	l := listing[remote.Holder]{
		object: func(h remote.Holder) object {
			return object{
				{"holder", text(h.Holder)}, {"token", h.Token}, {"slot", h.Slot}, {"permits", h.Permits},
				{"remaining_ms", millis(h.Remaining)}, {"held_ms", h.Held.Milliseconds()}, {"client", text(h.Client)},
			}
		},
		head: []string{"HOLDER", "TOKEN", "SLOT", "PERMITS", "LEASE ENDS IN", "HELD", "CLIENT"},
		cells: func(_ int, h remote.Holder) []string {
			ends := span(h.Remaining)
			if h.Remaining == remote.Forever {
				ends = "never"
			}
			return []string{visible(h.Holder), number(h.Token), number(h.Slot), number(h.Permits), ends, span(h.Held), visible(h.Client)}
		},
		none: "nobody holds " + visible(c.Name),
	}
	return l.print(s, servers.Holders(ctx, c.Name))
}

type waitersCommand struct{ keyArgument }

func (c *waitersCommand) Run(ctx context.Context, s *session) error {
	servers := remote.Open(s.servers)
	defer servers.Close()
	l := listing[remote.Waiter]{
		object: func(w remote.Waiter) object {
			return object{
				{"holder", text(w.Holder)}, {"permits", w.Permits}, {"waited_ms", w.Waited.Milliseconds()},
				{"remaining_wait_ms", w.Remaining.Milliseconds()}, {"client", text(w.Client)},
			}
		},
		head: []string{"PLACE", "HOLDER", "PERMITS", "WAITED", "GIVES UP IN", "CLIENT"},
		cells: func(i int, w remote.Waiter) []string {
			return []string{number(int64(i + 1)), visible(w.Holder), number(w.Permits), span(w.Waited), span(w.Remaining), visible(w.Client)}
		},
		none: "nobody waits for " + visible(c.Name),
	}
	return l.print(s, servers.Waiters(ctx, c.Name))
}

// listing prints rows: as they come, one JSON object a line; or as a table, when all are there.
type listing[Row any] struct {
	object func(Row) object
	head   []string
	cells  func(i int, row Row) []string
	order  func(a, b Row) int // of the table; nil: as they come
	none   string             // said on stderr in place of an empty table
}

func (l listing[Row]) print(s *session, rows iter.Seq2[Row, error]) error {
	var all []Row
	for row, err := range rows {
		switch {
		case err != nil:
			return err
		case !s.json:
			all = append(all, row)
			continue
		}
		if err := s.printJSON(l.object(row)); err != nil {
			return err
		}
	}
	if s.json {
		return nil
	}
	if len(all) == 0 {
		// Nothing is lost where nobody reads it.
		_, _ = fmt.Fprintln(s.stderr, l.none)
		return nil
	}
	if l.order != nil {
		slices.SortStableFunc(all, l.order)
	}
	var t table
	t.add(l.head...)
	for i, row := range all {
		t.add(l.cells(i, row)...)
	}
	return s.printTable(t)
}
