package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/cmd/semctl/internal/plain"
)

// Report says on stderr what happens; stdout belongs to the command.
type Report struct {
	Out   io.Writer
	JSON  bool       // one object a line
	Quiet bool       // nothing but what goes wrong
	Width func() int // of the terminal that Out is; nil: it is none

	drawn bool // the cursor stands in a line that is to be drawn over
	told  string
	gone  bool // the loss has been told
}

// event is what is told as JSON.
type event struct {
	Event     string       `json:"event"`
	Semaphore plain.Bytes  `json:"semaphore,omitempty"`
	Holder    plain.Bytes  `json:"holder,omitempty"`
	Token     int64        `json:"token,omitempty"`
	Slots     string       `json:"slots,omitempty"`
	LeftMS    int64        `json:"left_ms,omitempty"`
	PID       int          `json:"pid,omitempty"`
	Place     int          `json:"place,omitempty"`
	Waiters   int64        `json:"waiters,omitempty"`
	WaitedMS  int64        `json:"waited_ms,omitempty"`
	Holders   []heldByJSON `json:"holders,omitempty"`
	Guarded   *bool        `json:"guarded,omitempty"`
	Status    *int         `json:"status,omitempty"`
	Error     string       `json:"error,omitempty"`
}

type heldByJSON struct {
	Holder plain.Bytes `json:"holder"`
	Client plain.Bytes `json:"client"`
	HeldMS int64       `json:"held_ms"`
}

// say tells an event: as JSON, or as a sentence. Without a sentence people are not bothered with it.
// That nobody reads it is no reason to stop.
func (r *Report) say(e event, sentence string, args ...any) {
	if r.JSON {
		line, _ := json.Marshal(e) // it consists of strings and numbers
		_, _ = fmt.Fprintf(r.Out, "%s\n", line)
		return
	}
	if sentence == "" {
		return
	}
	r.clear()
	_, _ = fmt.Fprintf(r.Out, "semctl: "+sentence+"\n", args...)
}

// line tells where one stands in line: on a terminal each time in place, else when the place has changed.
func (r *Report) line(l line) {
	if r.Quiet {
		return
	}
	if r.JSON {
		e := event{Event: "waiting", Semaphore: plain.Bytes(l.name), Place: l.place, Waiters: l.waiters, WaitedMS: l.waited.Milliseconds()}
		for _, h := range l.holders {
			e.Holders = append(e.Holders, heldByJSON{plain.Bytes(h.Holder), plain.Bytes(h.Client), h.Held.Milliseconds()})
		}
		r.say(e, "")
		return
	}
	if r.Width == nil {
		if place := fmt.Sprint(l.place, l.beyond); place != r.told {
			r.told = place
			r.say(event{}, "%s", l)
		}
		return
	}
	text := []rune("semctl: " + l.String())
	if width := r.Width(); width > 1 && len(text) >= width {
		text = append(text[:width-2], '…')
	}
	r.drawn = true
	_, _ = fmt.Fprintf(r.Out, "\r\x1b[K%s", string(text))
}

// clear takes the line of a wait away.
func (r *Report) clear() {
	if r.drawn {
		r.drawn = false
		_, _ = fmt.Fprint(r.Out, "\r\x1b[K")
	}
}

// started tells that the command runs.
func (r *Report) started(p *client.Permit, pid int) {
	guarded := p.Guarded()
	e := event{Event: "started", Semaphore: plain.Bytes(p.Name()), PID: pid, Guarded: &guarded}
	if !guarded {
		r.say(e, "no semaphore server can be reached: running without a permit of %s", plain.Text(p.Name()))
		return
	}
	e.Holder, e.Token, e.Slots = plain.Bytes(p.Holder()), p.Token(), SlotList(p.Slots())
	r.say(e, "")
}

// ending tells that the command is ended because its permit is about to.
func (r *Report) ending(p *client.Permit) {
	left := p.Left()
	r.say(event{Event: "ending", Semaphore: plain.Bytes(p.Name()), LeftMS: left.Milliseconds()},
		"the permit of %s is not renewed and ends in %s", plain.Text(p.Name()), plain.Span(left))
}

// lost tells once that the permit is lost.
func (r *Report) lost(e *client.LostError) {
	if r.gone {
		return
	}
	r.gone = true
	r.say(event{Event: "lost", Semaphore: plain.Bytes(e.Name), Holder: plain.Bytes(e.Holder), Token: e.Token, Error: e.Reason.Error()},
		"the permit of %s is lost: %s", plain.Text(e.Name), plain.Text(e.Reason.Error()))
}

// The pauses between two looks at the line: on a terminal it is kept up to date; elsewhere it is looked at
// less and less often, for there may be thousands who wait.
const (
	terminalPause = time.Second
	firstPause    = 5 * time.Second
	lastPause     = time.Minute
)

// pauses are the times between looks.
type pauses struct{ now, last time.Duration }

func (r *Report) pause() *pauses {
	if r.Width != nil {
		return &pauses{terminalPause, terminalPause}
	}
	return &pauses{firstPause, lastPause}
}

func (p *pauses) next() time.Duration {
	d := p.now
	p.now = min(2*p.now, p.last)
	return d
}
