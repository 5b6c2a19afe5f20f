package guard

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/plain"
	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

const (
	// deepest is how far down the line one's place is looked for.
	deepest = 1000
	// shown is how many holders are named.
	shown = 2
)

// line is what is known of the line that somebody stands in.
type line struct {
	name    string
	place   int  // 1 is next; 0: not found among the first
	beyond  bool // the place is deeper than was looked
	waiters int64
	holders []remote.Holder // the first few
	more    int64           // holders who are not among them
	waited  time.Duration
	wait    time.Duration
}

// Look looks up the line of a semaphore for one of its waiters.
type Look func(ctx context.Context, name, holder string) (line, error)

// LookAt asks these servers.
func LookAt(servers *remote.Servers) Look {
	return func(ctx context.Context, name, holder string) (line, error) {
		l := line{name: name}
		reply, err := servers.Do(ctx, remote.Words("SEM.INFO", name))
		if err != nil {
			return l, err
		}
		fields, err := remote.ReadFields(reply.Value)
		if err != nil {
			return l, err
		}
		l.waiters = fields.Number("waiters")
		if l.place, l.beyond, err = placeOf(servers.Waiters(ctx, name), holder); err != nil {
			return l, err
		}
		if l.holders, err = first(servers.Holders(ctx, name), shown); err != nil {
			return l, err
		}
		l.more = max(0, fields.Number("holders")-int64(len(l.holders)))
		return l, nil
	}
}

// placeOf finds a holder among waiters.
func placeOf(waiters iter.Seq2[remote.Waiter, error], holder string) (place int, beyond bool, err error) {
	seen := 0
	for w, err := range waiters {
		if err != nil {
			return 0, false, err
		}
		seen++
		if w.Holder == holder {
			return seen, false, nil
		}
		if seen == deepest {
			return 0, true, nil
		}
	}
	return 0, false, nil
}

// first takes the first few.
func first(rows iter.Seq2[remote.Holder, error], n int) ([]remote.Holder, error) {
	var taken []remote.Holder
	for h, err := range rows {
		if err != nil {
			return nil, err
		}
		taken = append(taken, h)
		if len(taken) == n {
			break
		}
	}
	return taken, nil
}

// found says whether there is something to tell: who does not stand in line is about to be answered.
func (l line) found() bool { return l.place > 0 || l.beyond }

// String says who holds, for how long, and one's own place.
func (l line) String() string {
	var b strings.Builder
	place := fmt.Sprint(l.place)
	if l.beyond {
		place = fmt.Sprintf("beyond %d", deepest)
	}
	fmt.Fprintf(&b, "waiting for %s: place %s of %d; ", plain.Text(l.name), place, max(l.waiters, int64(l.place)))
	if len(l.holders) == 0 {
		b.WriteString("nobody holds it")
	}
	for i, h := range l.holders {
		if i == 0 {
			b.WriteString("held by ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s) for %s", plain.Text(h.Holder), plain.Text(h.Client), plain.Span(h.Held))
	}
	if l.more > 0 {
		fmt.Fprintf(&b, " and %d more", l.more)
	}
	fmt.Fprintf(&b, "; waited %s of %s", plain.Span(l.waited), plain.Span(l.wait))
	return b.String()
}
