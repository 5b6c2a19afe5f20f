package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
)

const (
	// surveyCalm and surveyHurry are how often the nodes of a cluster are asked who has which slot: while
	// everything works, and while something does not.
	surveyCalm  = 15 * time.Second
	surveyHurry = 500 * time.Millisecond
	// surveyGap is the least time between two surveys, whatever is reported moved.
	surveyGap = 250 * time.Millisecond
)

// slotted is a fleet of the masters of a Redis Cluster.
type slotted struct {
	link     *Link
	surveyed chan struct{} // closed after the first survey
	kick     chan struct{} // holds one element while a survey is wanted
	moved    func()        // told when slots may have changed their server

	mu      sync.Mutex
	owners  [script.Slots]*node
	byAddr  map[string]*node
	masters []*node // of byAddr, those that have slots
	closed  bool
	why     error // why there is no survey yet, or what it lacks
}

func openSlotted(l *Link) *slotted {
	s := &slotted{
		link: l, surveyed: make(chan struct{}), kick: make(chan struct{}, 1), byAddr: map[string]*node{}, why: errConnecting,
		moved: func() { l.ears.rearrange() },
	}
	return s
}

// start begins to ask.
func (s *slotted) start() { s.link.work.Go(s.survey) }

func (s *slotted) node(key string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[script.Slot(key)]
}

func (s *slotted) nodes() []*node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.masters)
}

func (s *slotted) first(ctx context.Context) {
	select {
	case <-s.surveyed:
	case <-ctx.Done():
	}
	firstOf(ctx, s.nodes())
}

func (s *slotted) ready() error {
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	if why != nil {
		return why
	}
	for _, n := range s.nodes() {
		if err := n.ready(); err != nil {
			return err
		}
	}
	return nil
}

func (s *slotted) move(key, addr string) *node {
	n := s.peek(addr)
	if n == nil {
		return nil
	}
	s.mu.Lock()
	s.owners[script.Slot(key)] = n
	if !slices.Contains(s.masters, n) {
		s.masters = append(s.masters, n)
	}
	s.mu.Unlock()
	s.look()
	return n
}

func (s *slotted) peek(addr string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.peekLocked(addr)
}

// peekLocked is the node at an address; one that nobody knows yet is made.
func (s *slotted) peekLocked(addr string) *node {
	n := s.byAddr[addr]
	if n == nil {
		n = s.link.newNode(func(context.Context) (string, error) { return addr, nil }, s.look)
		s.byAddr[addr] = n
	}
	return n
}

func (s *slotted) look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

func (s *slotted) close() {
	s.mu.Lock()
	s.closed = true
	all := s.byAddr
	s.byAddr = nil
	s.mu.Unlock()
	for _, n := range all {
		n.close(errClosed)
	}
}

// survey asks again and again who has which slot.
func (s *slotted) survey() {
	for first := true; ; first = false {
		view, err := s.best(s.link.ctx)
		s.adopt(view, err)
		if first {
			close(s.surveyed)
		}
		pause := surveyCalm
		if s.ready() != nil {
			pause = surveyHurry
		}
		if !s.rest(surveyGap, nil) || !s.rest(pause, s.kick) {
			return
		}
	}
}

// rest waits; false: the Link is closed.
func (s *slotted) rest(d time.Duration, kick <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.link.ctx.Done():
		return false
	case <-timer.C:
	case <-kick:
	}
	return true
}

// adopt sends calls by a new view from now on, and closes what it no longer has.
func (s *slotted) adopt(v *view, err error) {
	if err != nil {
		s.mu.Lock()
		if s.why != nil {
			s.why = err // else calls go on by the last view
		}
		s.mu.Unlock()
		return
	}
	var left []*node
	s.mu.Lock()
	s.masters = nil
	kept := map[*node]bool{}
	for i, addr := range v.owners {
		s.owners[i] = nil
		if addr != "" {
			s.owners[i] = s.peekLocked(addr)
			if !kept[s.owners[i]] {
				kept[s.owners[i]] = true
				s.masters = append(s.masters, s.owners[i])
			}
		}
	}
	for addr, n := range s.byAddr {
		if !kept[n] {
			delete(s.byAddr, addr)
			left = append(left, n)
		}
	}
	s.why = nil
	if missing := v.missing(); missing > 0 {
		s.why = fmt.Errorf("CLUSTERDOWN %d slots have no master", missing)
	}
	s.mu.Unlock()
	for _, n := range left {
		n.close(errors.New("it has no slots any more"))
	}
	s.moved()
}
