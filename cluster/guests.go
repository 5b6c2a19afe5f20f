package cluster

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/semserver/semserver/fsm"
)

// lostAfter is how many ticks (guestTick) a guest may be silent before it is given up for lost. Ticks are
// counted, not time: a leader that was stopped for a while has missed its guests' words, not they.
const lostAfter = 10

// guest is one life of another node's process, whose requests this node proposes while it leads. Its
// fields are guarded by guests.mu.
type guest struct {
	incarnation uint64
	node        string // its server id; empty: not heard of in this leadership
	stream      *hostStream
	silence     int // ticks since it was last heard
	lost        bool

	sections []guestSection // to be proposed, oldest first
	accepted uint64         // first ticket of the youngest section taken over
	dropped  map[uint64]struct{}
}

// guestSection is a section of a guest's, which CheckSection has found sound.
type guestSection struct {
	fsm.Part
	data []byte
}

func size(sections []guestSection) (n int) {
	for _, s := range sections {
		n += len(s.data)
	}
	return n
}

// guests are the other nodes as the leader sees them. A guest's section is proposed once, in the
// leadership under which it was sent, or never: that is what lets the guest conclude from the log that
// it was not.
type guests struct {
	// alone: this node has no peers. Whoever waits through another life of it is lost at once.
	alone bool

	mu      sync.Mutex
	term    uint64
	all     map[uint64]*guest
	pending int      // requests to be proposed
	gone    []uint64 // to be told to the state machine

	streams atomic.Pointer[map[uint64]*hostStream] // of those who are attached
}

func newGuests(alone bool) *guests {
	g := &guests{alone: alone, all: make(map[uint64]*guest)}
	g.publish()
	return g
}

// attached reports whether an incarnation wants to be told of its requests by this node.
func (gs *guests) attached(incarnation uint64) bool {
	return (*gs.streams.Load())[incarnation] != nil
}

// publish makes the streams known. Must be called under the lock, whenever one comes or goes.
func (gs *guests) publish() {
	streams := make(map[uint64]*hostStream)
	for _, g := range gs.all {
		if g.stream != nil {
			streams[g.incarnation] = g.stream
		}
	}
	gs.streams.Store(&streams)
}

// begin starts a leadership. Those through whom somebody waits have a while to turn up.
func (gs *guests) begin(term uint64, waiting []uint64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.term != term {
		gs.end()
		gs.term = term
	}
	for _, incarnation := range waiting {
		g := gs.known(incarnation)
		if gs.alone && !g.lost {
			g.lost = true
			gs.gone = append(gs.gone, incarnation)
		}
	}
}

// leadership returns the term of the leadership; 0: there is none.
func (gs *guests) leadership() uint64 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.term
}

// known returns the guest, whom it makes if there is none. Must be called under the lock.
func (gs *guests) known(incarnation uint64) *guest {
	g := gs.all[incarnation]
	if g == nil {
		g = &guest{incarnation: incarnation, dropped: make(map[uint64]struct{})}
		gs.all[incarnation] = g
	}
	return g
}

// dismiss ends leaderships of earlier terms than this one: nothing more is proposed for their guests, who
// find the other leader.
func (gs *guests) dismiss(term uint64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.term < term {
		gs.end()
	}
}

func (gs *guests) end() {
	for _, g := range gs.all {
		if g.stream != nil {
			g.stream.dismiss(g.sections)
		}
	}
	gs.term, gs.pending, gs.gone = 0, 0, nil
	clear(gs.all)
	gs.publish()
}

// attach makes a stream the way to a guest. It returns false when the leadership has ended.
func (gs *guests) attach(s *hostStream) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.term != s.term {
		return false
	}
	g := gs.known(s.incarnation)
	if g.stream != nil {
		g.stream.close()
	}
	g.node, g.stream, g.silence, g.lost = s.node, s, 0, false
	for _, other := range gs.all { // a node has one life at a time
		if other.node == s.node && other != g {
			gs.lose(other)
		}
	}
	gs.publish()
	return true
}

// detach forgets a stream that has ended.
func (gs *guests) detach(s *hostStream) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g := gs.all[s.incarnation]; g != nil && g.stream == s {
		g.stream = nil
		gs.publish()
	}
}

// lose gives a guest up: its waiters become orphans, and what it has sent and was not proposed never
// is, unless it sends it again.
func (gs *guests) lose(g *guest) {
	if g.lost {
		return
	}
	g.lost = true
	if g.stream != nil {
		g.stream.close()
		g.stream = nil
	}
	for _, s := range g.sections {
		gs.pending -= s.Requests
		g.dropped[s.First] = struct{}{}
	}
	g.sections = nil
	gs.gone = append(gs.gone, g.incarnation)
	gs.publish()
}

// leave is a guest's wish to be given up at once: its process ends.
func (gs *guests) leave(s *hostStream) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g := gs.all[s.incarnation]; g != nil && g.stream == s && !slices.Contains(gs.gone, g.incarnation) {
		gs.gone = append(gs.gone, g.incarnation)
	}
}

// retire gives up this node's own waiters, as for a guest that leaves.
func (gs *guests) retire(incarnation uint64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.gone = append(gs.gone, incarnation)
}

// heard notes that a guest lives.
func (gs *guests) heard(s *hostStream) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g := gs.all[s.incarnation]; g != nil && g.stream == s {
		g.silence = 0
	}
}

// tick counts silence, and reports whether somebody was lost.
func (gs *guests) tick() bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, incarnation := range slices.Sorted(maps.Keys(gs.all)) {
		g := gs.all[incarnation]
		if g.silence++; g.silence >= lostAfter {
			gs.lose(g)
		}
	}
	return len(gs.gone) > 0
}

// add takes over a section, unless it was taken over before.
func (gs *guests) add(s *hostStream, section guestSection) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.all[s.incarnation]
	if g == nil || g.stream != s {
		return
	}
	_, again := g.dropped[section.First]
	if section.First <= g.accepted && !again {
		return
	}
	delete(g.dropped, section.First)
	g.accepted = max(g.accepted, section.First)
	g.sections = append(g.sections, section)
	gs.pending += section.Requests
}

// number returns how many guests are attached.
func (gs *guests) number() int { return len(*gs.streams.Load()) }

// waiting returns how many requests of guests wait to be proposed, and whether somebody is to be told lost.
func (gs *guests) waiting() (requests int, lost bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.pending, len(gs.gone) > 0
}

// take returns what one entry carries: the oldest section of each guest, and who is lost.
func (gs *guests) take(term uint64) (taken []guestSection, gone []uint64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.term != term {
		return nil, nil
	}
	gone, gs.gone = gs.gone, nil
	if gs.pending == 0 {
		return nil, gone
	}
	for _, g := range gs.all {
		if len(g.sections) == 0 {
			continue
		}
		taken = append(taken, g.sections[0])
		gs.pending -= g.sections[0].Requests
		g.sections = slices.Delete(g.sections, 0, 1)
	}
	return taken, gone
}

// again takes back what an entry carried that was certainly not applied, before all that came later.
func (gs *guests) again(f *flight) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.term != f.term {
		return
	}
	gs.gone = append(gs.gone, f.lost...)
	for _, s := range f.guests {
		g := gs.all[s.Incarnation]
		if g.lost {
			g.dropped[s.First] = struct{}{}
			continue
		}
		g.sections = slices.Insert(g.sections, 0, s)
		gs.pending += s.Requests
	}
}

// tell passes on what an entry brought about for guests.
func (gs *guests) tell(out fsm.Outcome, own uint64) {
	streams := *gs.streams.Load()
	if len(streams) == 0 {
		return
	}
	for _, s := range out.Sections {
		if stream := streams[s.Incarnation]; stream != nil && s.Incarnation != own {
			stream.answer(s)
		}
	}
	for _, e := range out.Events {
		if stream := streams[e.Ticket.Incarnation]; stream != nil {
			stream.event(e)
		}
	}
	for _, stream := range streams {
		stream.flush()
	}
}
