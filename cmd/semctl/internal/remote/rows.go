package remote

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Forever is the Remaining of a lease that never ends.
const Forever time.Duration = -1

// Holder is one live grant in a listing.
type Holder struct {
	Holder    string
	Token     int64
	Slot      int64
	Permits   int64
	Remaining time.Duration // of the lease; Forever: it never ends
	Held      time.Duration
	Client    string
}

// Waiter is one place in line.
type Waiter struct {
	Holder    string
	Permits   int64
	Waited    time.Duration
	Remaining time.Duration // until the wait ends
	Client    string
}

// pageSize is how many rows are asked for at once; servers send no more than 1,000.
const pageSize = 500

// Holders yields who holds permits of a semaphore, page by page. After an error it ends.
func (s *Servers) Holders(ctx context.Context, key string) iter.Seq2[Holder, error] {
	return pages(func(cursor string) ([]any, error) {
		return s.page(ctx, "SEM.HOLDERS", key, "CURSOR", cursor, "COUNT", pageSize)
	}, readHolder)
}

// Waiters yields who waits for permits of a semaphore, in line order.
func (s *Servers) Waiters(ctx context.Context, key string) iter.Seq2[Waiter, error] {
	return pages(func(cursor string) ([]any, error) {
		return s.page(ctx, "SEM.WAITERS", key, "CURSOR", cursor, "COUNT", pageSize)
	}, readWaiter)
}

// Semaphores yields the figures of every semaphore whose name matches the glob, as SEM.INFO tells
// them. One that is deleted meanwhile is left out.
func (s *Servers) Semaphores(ctx context.Context, match string) iter.Seq2[Fields, error] {
	return pages(func(cursor string) ([]any, error) {
		page, err := s.page(ctx, "SEM.SCAN", cursor, "MATCH", match, "COUNT", pageSize)
		if err != nil {
			return nil, err
		}
		found, err := s.describe(ctx, page[1].([]any))
		return []any{page[0], found}, err
	}, ReadFields)
}

// Names yields the name of every semaphore that matches the glob.
func (s *Servers) Names(ctx context.Context, match string) iter.Seq2[string, error] {
	return pages(func(cursor string) ([]any, error) {
		return s.page(ctx, "SEM.SCAN", cursor, "MATCH", match, "COUNT", pageSize)
	}, func(row any) (string, error) {
		name, ok := row.(string)
		return name, unexpected(ok, row)
	})
}

// Nodes are the nodes of the cluster.
func (s *Servers) Nodes(ctx context.Context) ([]Fields, error) {
	list := Question("SEM.NODE", "LIST")
	list.Local = true
	reply, err := s.Do(ctx, list)
	if err != nil {
		return nil, err
	}
	all, ok := reply.Value.([]any)
	if !ok {
		return nil, unexpected(false, reply.Value)
	}
	var nodes []Fields
	for _, one := range all {
		fields, err := ReadFields(one)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, fields)
	}
	return nodes, nil
}

// page asks for one page: a cursor and rows.
func (s *Servers) page(ctx context.Context, words ...any) ([]any, error) {
	reply, err := s.Do(ctx, Question(words...))
	if err != nil {
		return nil, err
	}
	page, ok := reply.Value.([]any)
	if !ok || len(page) != 2 {
		return nil, unexpected(false, reply.Value)
	}
	_, cursor := page[0].(string)
	_, rows := page[1].([]any)
	return page, unexpected(cursor && rows, reply.Value)
}

// describe asks for the figures of semaphores.
func (s *Servers) describe(ctx context.Context, keys []any) ([]any, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var commands [][]any
	for _, key := range keys {
		commands = append(commands, []any{"SEM.INFO", key})
	}
	replies, err := s.Read(ctx, commands...)
	if err != nil {
		return nil, err
	}
	var found []any
	for _, r := range replies {
		refused, isRefusal := r.(*Refusal)
		switch {
		case !isRefusal:
			found = append(found, r)
		case refused.Code != "NOSEM":
			return nil, refused
		}
	}
	return found, nil
}

// pages yields the rows of all pages, from cursor 0 to cursor 0.
func pages[Row any](ask func(cursor string) ([]any, error), read func(row any) (Row, error)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var none Row
		for cursor := "0"; ; {
			page, err := ask(cursor)
			if err != nil {
				yield(none, err)
				return
			}
			rows, _ := page[1].([]any)
			for _, r := range rows {
				row, err := read(r)
				if !yield(row, err) || err != nil {
					return
				}
			}
			if cursor = page[0].(string); cursor == "0" {
				return
			}
		}
	}
}

func readHolder(row any) (Holder, error) {
	c, ok := row.([]any)
	if !ok || len(c) < 7 {
		return Holder{}, unexpected(false, row)
	}
	r := reader{}
	h := Holder{
		Holder: r.text(c[0]), Token: r.number(c[1]), Slot: r.number(c[2]), Permits: r.number(c[3]),
		Remaining: r.duration(c[4]), Held: r.duration(c[5]), Client: r.text(c[6]),
	}
	return h, unexpected(!r.failed, row)
}

func readWaiter(row any) (Waiter, error) {
	c, ok := row.([]any)
	if !ok || len(c) < 5 {
		return Waiter{}, unexpected(false, row)
	}
	r := reader{}
	w := Waiter{
		Holder: r.text(c[0]), Permits: r.number(c[1]),
		Waited: r.duration(c[2]), Remaining: r.duration(c[3]), Client: r.text(c[4]),
	}
	return w, unexpected(!r.failed, row)
}

// reader reads the parts of a reply, and notes whether one of them was of another kind.
type reader struct{ failed bool }

func (r *reader) text(v any) string {
	s, ok := v.(string)
	r.failed = r.failed || !ok
	return s
}

func (r *reader) number(v any) int64 {
	n, ok := v.(int64)
	r.failed = r.failed || !ok
	return n
}

// duration reads milliseconds; -1 is Forever.
func (r *reader) duration(v any) time.Duration {
	ms := r.number(v)
	if ms < 0 {
		return Forever
	}
	return time.Duration(ms) * time.Millisecond
}

func unexpected(ok bool, reply any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("the server sent %.200q, which is not understood", fmt.Sprint(reply))
}
