package fsm

import (
	"fmt"

	"github.com/semserver/semserver/semaphore"
)

// Outcome is what an entry brought about, for those who were wanted.
type Outcome struct {
	Void     bool      // the entry belongs to another leadership: nothing was changed
	Open     *Open     // this entry was an Open, and took effect
	Lost     []uint64  // the incarnations whose waiters this entry made orphans, which comes before what follows
	Sections []Section // the wanted sections, in order
	Events   []Event   // for those who stand in line, from earlier entries or from this one
}

// Section is the replies to one section of a batch: Replies[i] answers ticket First+i.
type Section struct {
	Incarnation, First uint64
	Replies            []semaphore.Reply
}

// InLine is the value of the reply to an Acquire that joined the line; its end comes as an Event.
type InLine struct{}

// Event is the answer to a request that stood in line.
type Event struct {
	Ticket semaphore.Ticket
	Reply  semaphore.Reply
}

// maxWall is the latest wall clock that is believed. Beyond it (the year 2112) the clock is broken,
// and tokens would leave too little room below 2^53.
const maxWall = 1 << 52

// Apply executes one entry that was committed under a raft term. An entry that carries another term
// was proposed under a leadership that had ended: it is void. wanted says whose replies and events are
// to be produced (nil: nobody's); it has no influence on the state. The data is not to be changed
// meanwhile; nothing refers to it afterwards. After an error, which means that the entry is damaged or
// of another version, the state is not to be used any more.
func (s *State) Apply(data []byte, term uint64, wanted func(incarnation uint64) bool) (Outcome, error) {
	head, body, err := openEntry(data)
	if err != nil {
		return Outcome{}, fmt.Errorf("fsm: entry: %w", err)
	}
	if head.term != term {
		return Outcome{Void: true}, nil
	}
	s.wanted, s.events = wanted, nil
	var out Outcome
	switch head.kind {
	case entryOpen:
		out.Open = &Open{Term: head.term, Incarnation: body.u64()}
		err = body.end()
	case entryBatch:
		err = s.batch(body, &out)
	default:
		err = fmt.Errorf("unknown kind %d", head.kind)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("fsm: entry: %w", err)
	}
	out.Events, s.events, s.wanted = s.events, nil, nil
	return out, nil
}

// batch moves the clock, then processes what was lost and what is due, then the requests.
func (s *State) batch(body *reader, out *Outcome) error {
	b, err := body.batch()
	if err != nil {
		return err
	}
	s.now = max(s.now, b.stamp)
	s.at = s.now
	if s.wall = b.wall; s.wall > maxWall {
		s.wall = 0
	}
	for len(b.losses.rest) > 0 {
		incarnation, grace := b.losses.u64(), b.losses.svar()
		if b.losses.err != nil {
			return fmt.Errorf("loss: %w", b.losses.err)
		}
		s.lose(incarnation, grace)
		out.Lost = append(out.Lost, incarnation)
	}
	s.expire()
	for len(b.sections.rest) > 0 {
		part := b.sections.section()
		if b.sections.err != nil {
			return fmt.Errorf("section: %w", b.sections.err)
		}
		replies, err := s.section(&part)
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		if s.replies {
			out.Sections = append(out.Sections, Section{part.incarnation, part.first, replies})
		}
	}
	return nil
}

func (s *State) section(part *section) ([]semaphore.Reply, error) {
	s.replies = s.wants(part.incarnation)
	s.limits = part.limits
	var replies []semaphore.Reply
	if s.replies {
		replies = make([]semaphore.Reply, 0, part.count)
	}
	requests := &part.requests
	for i := range part.count {
		s.ticket = semaphore.Ticket{Incarnation: part.incarnation, Number: part.first + uint64(i)}
		s.budget = max(s.budget, s.allowance)
		reply := s.request(requests)
		if requests.err != nil {
			return nil, requests.err
		}
		if s.replies {
			replies = append(replies, reply)
		}
	}
	return replies, requests.end()
}

// request decodes and executes one request. The frequent kinds are decoded in place.
func (s *State) request(r *reader) semaphore.Reply {
	switch kind := r.byte(); kind {
	case kindAcquire:
		if a := r.acquire(); r.err == nil {
			return s.acquire(&a)
		}
	case kindRelease:
		if q := r.release(); r.err == nil {
			return s.release(&q)
		}
	case kindRenew:
		if q := r.renew(); r.err == nil {
			return s.renew(&q)
		}
	default:
		if q := r.request(kind); r.err == nil {
			return s.execute(q)
		}
	}
	return semaphore.Reply{}
}

func (s *State) execute(q semaphore.Request) semaphore.Reply {
	switch q := q.(type) {
	case semaphore.Cancel:
		return s.cancel(q.Key, q.Holder, nil)
	case Leave:
		return s.cancel(q.Key, q.Holder, &q.Ticket)
	case GiveBack:
		return s.giveBack(&q)
	case Rejoin:
		return s.rejoin(&q)
	case semaphore.Create:
		return s.create(&q)
	case semaphore.Resize:
		return s.resize(&q)
	case semaphore.Reconcile:
		return s.reconcile(q.Key)
	case semaphore.Delete:
		return s.delete(&q)
	}
	if !s.replies {
		return semaphore.Reply{}
	}
	return s.read(q)
}

// wants says whether replies and events of an incarnation are to be produced.
func (s *State) wants(incarnation uint64) bool { return s.wanted != nil && s.wanted(incarnation) }

// tell answers a request that stood in line. An orphan is not told anything: its node learns first
// that it was given up, and asks again (Rejoin).
func (s *State) tell(w *waiter, reply semaphore.Reply) {
	if !w.orphan() && s.wants(w.ticket.Incarnation) {
		s.events = append(s.events, Event{w.ticket, reply})
	}
}

// yes and no are the replies 1 and 0.
func yes() semaphore.Reply { return semaphore.Reply{Value: semaphore.Number(1)} }
func no() semaphore.Reply  { return semaphore.Reply{Value: semaphore.Number(0)} }

// refuse is the reply that says what was wrong, and that nothing was changed.
func refuse(err *semaphore.Error) semaphore.Reply { return semaphore.Reply{Err: err} }
