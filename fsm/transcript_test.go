package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/semaphore"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata anew; review the result like code")

// TestTranscripts plays testdata/*.txt. A transcript is blocks of lines, each one entry of the log:
//
//	at 100 from 2          the stamp in milliseconds, and the node it came through
//	acquire k b wait 500   requests
//	lost 2 grace 50        or a loss
//	= in line              what came of it: replies,
//	! 1/3 nil              events by ticket,
//	: k 1 of 1 …           and the state
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// play returns the transcript as it comes out.
func play(t *testing.T, script string) string {
	t.Helper()
	s, ticket := New(), uint64(1)
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(script, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		b, head := newBatch(testTerm), (options)(nil)
		var requests []semaphore.Request
		for line := range strings.Lines(block + "\n") {
			if strings.ContainsAny(line[:1], "=!:") {
				continue
			}
			out.WriteString(line)
			fields := strings.Fields(line)
			switch {
			case len(fields) == 0 || fields[0] == "#":
			case fields[0] == "at":
				head = parseOptions(t, fields)
			case fields[0] == "lost":
				lost := parseOptions(t, fields)
				b.Lost(uint64(lost.number("lost")), ms(lost.number("grace")))
			default:
				requests = append(requests, parseRequest(t, fields))
			}
		}
		if head == nil {
			continue
		}
		entry(b, head, requests, ticket)
		ticket += uint64(len(requests))
		outcome, err := s.Apply(b.Seal(Time(head.number("at")*1000), head.number("wall")), testTerm, everybody)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		describe(&out, s, outcome)
		s = restored(t, snapshotOf(t, s))
	}
	return out.String()
}

func entry(b *Builder, head options, requests []semaphore.Request, ticket uint64) {
	if len(requests) == 0 {
		return
	}
	b.Section(uint64(max(1, head.number("from"))), ticket, semaphore.DefaultLimits())
	for _, q := range requests {
		b.Add(AppendRequest(nil, q), 1)
	}
}

// options are words that stand for themselves or are followed by a number.
type options map[string]string

func parseOptions(t *testing.T, fields []string) options {
	t.Helper()
	o := make(options)
	for i := 0; i < len(fields); i++ {
		name := fields[i]
		switch name {
		case "persist", "fresh", "made", "force", "ifabsent":
			o[name] = "1"
			continue
		}
		if i++; i == len(fields) {
			t.Fatalf("%q has no value", name)
		}
		if _, err := strconv.ParseInt(fields[i], 10, 64); err != nil {
			t.Fatalf("%q is no number: %v", name, err)
		}
		o[name] = fields[i]
	}
	return o
}

func (o options) number(name string) int64 {
	n, _ := strconv.ParseInt(o[name], 10, 64)
	return n
}

func (o options) has(name string) bool { _, ok := o[name]; return ok }

func (o options) lease() time.Duration {
	if o.has("persist") {
		return semaphore.Persist
	}
	return ms(o.number("lease"))
}

func (o options) settings() (s semaphore.Settings) {
	for name, setting := range map[string]*semaphore.Setting{
		"lease": &s.Lease, "maxlease": &s.MaxLease, "maxhold": &s.MaxHold, "quarantine": &s.Quarantine, "idle": &s.Idle,
	} {
		if o.has(name) {
			*setting = semaphore.Set(ms(o.number(name)))
		}
	}
	return s
}

func parseRequest(t *testing.T, f []string) semaphore.Request {
	t.Helper()
	verb, key := f[0], f[1]
	switch verb {
	case "create", "resize":
		capacity, o := parseOptions(t, []string{"capacity", f[2]}), parseOptions(t, f[3:])
		if verb == "resize" {
			return semaphore.Resize{Key: key, Capacity: capacity.number("capacity"), Settings: o.settings()}
		}
		return semaphore.Create{Key: key, Capacity: capacity.number("capacity"), Settings: o.settings(), MinToken: o.number("mintoken"), IfAbsent: o.has("ifabsent")}
	case "delete":
		return semaphore.Delete{Key: key, Force: parseOptions(t, f[2:]).has("force")}
	}
	holder, o := f[2], parseOptions(t, f[3:])
	ticket := semaphore.Ticket{Incarnation: uint64(o.number("node")), Number: uint64(o.number("ticket"))}
	switch verb {
	case "acquire":
		return semaphore.Acquire{
			Key: key, Holder: holder, Permits: max(1, o.number("permits")), Lease: o.lease(), Wait: ms(o.number("wait")),
			Create: o.has("capacity"), Capacity: o.number("capacity"), Fresh: o.has("fresh"), Made: o.has("made"),
		}
	case "release":
		return semaphore.Release{Key: key, Holder: holder, Token: o.number("token")}
	case "renew":
		return semaphore.Renew{Key: key, Holder: holder, Token: o.number("token"), Lease: o.lease()}
	case "cancel":
		return semaphore.Cancel{Key: key, Holder: holder}
	case "check":
		return semaphore.Check{Key: key, Holder: holder, Token: o.number("token")}
	case "leave":
		return Leave{Key: key, Holder: holder, Ticket: ticket}
	case "giveback":
		return GiveBack{Key: key, Holder: holder, Token: o.number("token"), Ticket: ticket}
	}
	t.Fatalf("unknown request %q", verb)
	return nil
}

func describe(out *strings.Builder, s *State, o Outcome) {
	for _, section := range o.Sections {
		for _, r := range section.Replies {
			fmt.Fprintf(out, "= %s\n", text(r))
		}
	}
	for _, e := range o.Events {
		fmt.Fprintf(out, "! %d/%d %s\n", e.Ticket.Incarnation, e.Ticket.Number, text(e.Reply))
	}
	s.records.Scan(func(_ uint64, rec *record) bool {
		m := s.byName[rec.name]
		fmt.Fprintf(out, ": %s %d of %d, %d available", rec.name, m.inUse, rec.capacity, m.usage(s.overdue(m)).Available)
		if m.quarantined > 0 {
			fmt.Fprintf(out, ", %d in quarantine", m.quarantined)
		}
		fmt.Fprintf(out, "%s\n", rec.settings)
		rec.grants.Scan(func(_ int64, g *grant) bool {
			fmt.Fprintf(out, ":   %s holds %s under %d until %s\n", g.holder(), places(g.slots()), g.token, moment(g.due()))
			return true
		})
		if rec.line != nil {
			rec.line.Scan(func(_ uint64, w *waiter) bool {
				fmt.Fprintf(out, ":   %s waits for %d until %s\n", w.holder(), w.permits, moment(w.due()))
				return true
			})
		}
		return true
	})
}

func moment(t Time) string {
	if t == never {
		return "released"
	}
	return millis(int64(t))
}

func places(slots []semaphore.Range) string {
	var all []string
	for _, r := range slots {
		if r.First == r.Last {
			all = append(all, fmt.Sprint(r.First))
			continue
		}
		all = append(all, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	return strings.Join(all, ",")
}

func text(r semaphore.Reply) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	switch v := r.Value.(type) {
	case nil:
		return "nil"
	case InLine:
		return "in line"
	case *semaphore.Grant:
		var b bytes.Buffer
		fmt.Fprintf(&b, "grant %s %d slots %s lease ", v.Holder, v.Token, places(v.Slots))
		if v.Lease == semaphore.Persist {
			b.WriteString("persist")
		} else {
			b.WriteString(v.Lease.String())
		}
		if v.Replayed {
			b.WriteString(" replayed")
		}
		return b.String()
	}
	return fmt.Sprintf("%v", r.Value)
}
