package fsm

import (
	"strings"
	"unsafe"

	"github.com/semserver/semserver/semaphore"
)

// grant is one holder's permits. Snapshots read it while later entries are applied: one of an older
// epoch is copied before it is changed (sem.edit). Only place is not for snapshots.
type grant struct {
	text    string // the holder's id, then the label; it belongs to this grant alone
	token   int64
	granted Time
	end     Time               // of the lease; never: it does not end
	length  int64              // of the lease as last given, before MAXHOLD cut it; persist: for ever
	undo    Time               // 0, or when it is given back because its node was lost before it was made; see renewal
	ticket  semaphore.Ticket   // of the request that it answers; none once it was replayed or renewed
	one     [1]semaphore.Range // its slots, in the common case that they are one range
	more    *[]semaphore.Range // its slots otherwise
	at      int32              // in sem.grants
	epoch   uint32
	idSize  uint16
	waited  bool // it was made to a waiter
}

// shortText is how long a text may be to stand in the allocation of its grant.
const shortText = 32

// newGrant returns a grant without permits that has its own copy of the texts. Most are short, and
// stand behind the grant: one allocation instead of two, for each holder there is.
func newGrant(holder, label string) *grant {
	size := len(holder) + len(label)
	if size == 0 || size > shortText {
		return &grant{text: joined(holder, label), idSize: uint16(len(holder))}
	}
	g := new(struct {
		grant
		bytes [shortText]byte
	})
	copy(g.bytes[copy(g.bytes[:], holder):], label)
	// From here on nobody changes these bytes, and whoever has the string keeps all of g.
	g.text, g.idSize = unsafe.String(&g.bytes[0], size), uint16(len(holder))
	return &g.grant
}

func (g *grant) holder() string { return g.text[:g.idSize] }
func (g *grant) label() string  { return g.text[g.idSize:] }

// due is when the grant ends by itself.
func (g *grant) due() Time {
	if g.undo != 0 && g.undo < g.end {
		return g.undo
	}
	return g.end
}

// renewal says that the grant took the place of another with FRESH, and was counted as a renewal. It is
// known until somebody has been told, for until then it may be given back: as an undo that never comes,
// which snapshots have room for.
func (g *grant) renewal() bool { return g.undo == never }

func (g *grant) live(now Time) bool { return g.due() > now }

func (g *grant) before(other *grant) bool {
	mine, its := g.due(), other.due()
	if mine != its {
		return mine < its
	}
	return g.token < other.token
}

func (g *grant) latest(other *grant) bool { return g.token > other.token }

func (g *grant) place() *int32 { return &g.at }

func (g *grant) permits() int64 { return width(g.slots()) }

// slots are never changed once they are set: replies share them.
func (g *grant) slots() []semaphore.Range {
	if g.more != nil {
		return *g.more
	}
	return g.one[:]
}

// occupy sets the slots.
func (g *grant) occupy(slots []semaphore.Range) {
	if len(slots) == 1 {
		g.one[0] = slots[0]
		return
	}
	many := slots
	g.more = &many
}

// width is how many places ranges cover.
func width(ranges []semaphore.Range) (n int64) {
	for _, r := range ranges {
		n += r.Last - r.First + 1
	}
	return n
}

func (g *grant) copied(epoch uint32) *grant {
	c := newGrant(g.holder(), g.label())
	text := c.text
	*c = *g
	c.text, c.epoch = text, epoch
	return c
}

// together is how many replies share an allocation: many, since there is one for each grant, and few,
// since one that is kept keeps all of them.
const together = 32

// told is a grant as its holder is told of it.
func (s *State) told(g *grant, ticket semaphore.Ticket, replayed bool) *semaphore.Grant {
	lease := semaphore.Persist
	if g.end != never {
		lease = duration(g.end.since(s.now))
	}
	if len(s.room) == 0 {
		s.room = make([]semaphore.Grant, together)
	}
	told := &s.room[0]
	s.room = s.room[1:]
	*told = semaphore.Grant{
		Holder: g.holder(), Token: g.token, Slots: g.slots(),
		Lease: lease, Replayed: replayed, Ticket: ticket,
	}
	return told
}

// joined stores two texts in one allocation of their own.
func joined(holder, label string) string {
	var b strings.Builder
	b.Grow(len(holder) + len(label))
	b.WriteString(holder)
	b.WriteString(label)
	return b.String()
}

// live returns the live grant of a holder, or nil.
func (m *sem) live(holder string, now Time) *grant {
	if g := m.grants.find(holder); g != nil && g.live(now) {
		return g
	}
	return nil
}

// hold takes in a grant whose slots are taken.
func (s *State) hold(m *sem, g *grant) {
	rec := s.write(m)
	g.epoch = s.epoch
	rec.grants.Load(g.token, g) // a Set that is quick at the end of the tree, where the latest token goes
	m.grants.add(g)
	n := g.permits()
	m.inUse += n
	s.stats.InUse += n
	s.stats.Holders++
	s.moves++
}

// drop takes a grant out. What becomes of its slots is up to the caller.
func (s *State) drop(m *sem, g *grant) {
	rec := s.write(m)
	rec.grants.Delete(g.token)
	m.grants.remove(g)
	n := g.permits()
	m.inUse -= n
	s.stats.InUse -= n
	s.stats.Holders--
	s.moves++
	if m.unused() {
		rec.unused = s.at
	}
}

// edit changes a grant: its fields, but not its token.
func (s *State) edit(m *sem, g *grant, change func(g *grant)) {
	rec := s.write(m)
	if g.epoch != s.epoch {
		c := g.copied(s.epoch)
		m.grants.replace(g, c)
		rec.grants.Set(c.token, c)
		g = c
	}
	change(g)
	m.grants.heap.fix(g)
	s.moves++
}
