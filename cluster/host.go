package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/fsm"
)

const (
	// guestTick is how often guests are looked after; each speaks as often, at least.
	guestTick = 100 * time.Millisecond
	// helloPatience is how long a peer may take to say hello, and a new leader to open its term.
	helloPatience = time.Second
	// writePatience is how long a peer may take to accept what is written to it.
	writePatience = time.Second
	// maxAnswer is how many bytes one answer may take; a guest learns a larger one from its own log.
	maxAnswer = 8 << 20
	// maxBacklog is how many bytes of answers wait for a guest, who beyond that has to learn them from
	// its own log.
	maxBacklog = 64 << 20
)

// hostStream is the leader's end of a guest's stream.
type hostStream struct {
	conn        net.Conn
	node        string
	incarnation uint64
	term        uint64

	wake chan struct{} // capacity 1: there is something to write
	done chan struct{} // closed when the stream is

	mu     sync.Mutex
	out    []byte
	last   bool // what is in out is the last that is written
	closed bool
}

// host serves a guest for as long as this node leads. It is a handler of peer.Network.
func (n *Node) host(c net.Conn, g peer.Greeting) {
	defer c.Close()
	<-n.begun
	in := bufio.NewReaderSize(c, readStep)
	s, err := n.receive(c, in, g.Node)
	if err != nil {
		n.cfg.Logger.Debug("guest turned away", "node", g.Node, "error", err)
		return
	}
	var writing sync.WaitGroup
	writing.Go(s.write)
	err = n.serveGuest(s, in)
	n.guests.detach(s)
	s.close()
	writing.Wait()
	n.cfg.Logger.Debug("guest's stream ended", "node", g.Node, "error", err)
}

// lookAfterGuests gives up guests who have been silent for too long.
func (n *Node) lookAfterGuests(ctx context.Context) {
	ticker := time.NewTicker(guestTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if term := n.guests.leadership(); n.raft.State() != raft.Leader {
			n.guests.dismiss(term + 1) // what was a leadership before is none any more, and no term comes back
		}
		if n.guests.tick() {
			n.proposer.nudge()
		}
	}
}

// leader returns who leads, and where it is reached now.
func (n *Node) leader() (raft.ServerAddress, raft.ServerID) {
	address, id := n.raft.LeaderWithID()
	return raft.ServerAddress(n.membership.roster.locate(string(id), string(address))), id
}

// dialLeader opens a stream to the leader.
func (n *Node) dialLeader(ctx context.Context, address string) (net.Conn, peer.Greeting, error) {
	c, g, err := n.network.Dial(ctx, address, peer.Forward)
	if own := n.clusterID(); err == nil && g.Cluster != own {
		c.Close()
		return nil, g, fmt.Errorf("a node of cluster %q answers, ours is %q", g.Cluster, own)
	}
	return c, g, err
}

var (
	errNotLeading = errors.New("this node does not lead")
	errNoGuest    = errors.New("the node is no member of this cluster")
)

// counts reports whether a node is a member, with a vote or without.
func (n *Node) counts(node string) bool {
	future := n.raft.GetConfiguration()
	if future.Error() != nil {
		return false
	}
	_, member := find(future.Configuration().Servers, node)
	return member
}

// receive reads a guest's hello and welcomes it once this node leads.
func (n *Node) receive(c net.Conn, in *bufio.Reader, node string) (*hostStream, error) {
	c.SetDeadline(time.Now().Add(helloPatience))
	var buffer []byte
	kind, body, err := readFrame(in, &buffer, func() {})
	if err != nil {
		return nil, fmt.Errorf("read hello: %w", err)
	}
	incarnation, err := readNumber(body)
	if err != nil || kind != frameHello {
		return nil, errMalformed
	}
	if !n.counts(node) {
		return nil, errNoGuest
	}
	lead := n.proposer.leading()
	for deadline := time.Now().Add(helloPatience); lead == nil; lead = n.proposer.leading() {
		if time.Now().After(deadline) || n.queue.isClosed() {
			return nil, errNotLeading
		}
		time.Sleep(leaderPoll / 4)
	}
	c.SetDeadline(time.Time{})
	s := &hostStream{
		conn: c, node: node, incarnation: incarnation, term: lead.term,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.out = appendNumber(nil, frameWelcome, lead.term)
	if !n.guests.attach(s) {
		return nil, errNotLeading
	}
	return s, nil
}

// serveGuest takes over what the guest sends until its stream ends.
func (n *Node) serveGuest(s *hostStream, in *bufio.Reader) error {
	for {
		var section []byte // the entry will be made of it: each has a buffer of its own
		kind, body, err := readFrame(in, &section, func() { n.guests.heard(s) })
		if err != nil {
			return err
		}
		n.guests.heard(s)
		switch kind {
		case framePing:
		case frameGoodbye:
			n.guests.leave(s)
			n.proposer.nudge()
		case frameSection:
			part, err := fsm.CheckSection(body)
			if err != nil || part.Incarnation != s.incarnation {
				return errors.Join(errMalformed, err)
			}
			n.guests.add(s, guestSection{part, body})
			n.proposer.nudge()
		default:
			return errMalformed
		}
	}
}

// write writes what there is to write, and a ping now and then, until the stream is closed.
func (s *hostStream) write() {
	defer s.close()
	tick := time.NewTicker(guestTick)
	defer tick.Stop()
	var spare []byte
	for {
		s.mu.Lock()
		out, last := s.out, s.last
		s.out = spare[:0]
		s.mu.Unlock()
		if err := writeSteadily(s.conn, out); err != nil || last {
			return
		}
		spare = out
		if cap(spare) > readStep {
			spare = nil
		}
		select {
		case <-s.done:
			return
		case <-s.wake:
		case <-tick.C:
			s.append(func(out []byte) []byte { return appendFrame(out, framePing, nil) })
		}
	}
}

// append adds to what is to be written.
func (s *hostStream) append(add func(out []byte) []byte) {
	s.mu.Lock()
	s.out = add(s.out)
	over := len(s.out) > maxBacklog
	s.mu.Unlock()
	if over {
		s.close()
	}
}

func (s *hostStream) answer(section fsm.Section) {
	s.append(func(out []byte) []byte {
		if longer := appendAnswer(out, section); len(longer)-len(out) <= maxAnswer {
			return longer
		}
		return out
	})
}

// dismiss ends the stream when it has told which sections will never be proposed.
func (s *hostStream) dismiss(sections []guestSection) {
	s.mu.Lock()
	for _, one := range sections {
		s.out = appendNumber(s.out, frameRefused, one.First)
	}
	s.out = appendFrame(s.out, framePing, nil) // so that there is something to write
	s.last = true
	s.mu.Unlock()
	s.flush()
}

func (s *hostStream) event(e fsm.Event) {
	s.append(func(out []byte) []byte { return appendEvent(out, e) })
}

// flush wakes the writer if there is something to write.
func (s *hostStream) flush() {
	s.mu.Lock()
	idle := len(s.out) == 0
	s.mu.Unlock()
	if idle {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close ends the stream; it does not wait for anything.
func (s *hostStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.done)
	s.conn.Close()
}
