package cluster

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/fsm"
)

const (
	// dialPatience is how long it may take to reach the leader.
	dialPatience = time.Second
	// streamSilence is how long the leader may be silent on a stream: longer than its pings are apart.
	streamSilence = time.Second
	// maxForwardPause is how long a node waits at most before it tries the leader again.
	maxForwardPause = 200 * time.Millisecond
)

// forwarder sends this node's requests to the leader while that is another node, and delivers what the
// leader answers. It does what the proposer does on the leader: it takes flights from the same queue.
//
// A flight belongs to the leadership that it was sent to. When the stream to that leader breaks and
// comes back, what is outstanding is sent again, and the leader knows what it has; when another leads,
// the log tells what became of it, and what was not applied is sent to the new leader.
type forwarder struct {
	self     string // server id
	queue    *queue
	replied  func(fsm.Section) error
	ended    func([]fsm.Event)
	leader   func() (raft.ServerAddress, raft.ServerID)
	parting  func() bool // goodbye is to be said
	dial     func(ctx context.Context, address string) (net.Conn, peer.Greeting, error)
	clock    Clock
	log      *slog.Logger
	released func()        // the leader is not attached to any more: somebody else may take runs
	patience time.Duration // how long a stream is kept while no leader is known
	wake     chan struct{} // capacity 1: look again
	attached atomic.Bool   // the leader has welcomed this node
}

// nudge makes the forwarder look again soon.
func (f *forwarder) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run forwards until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	pause := leaderPoll
	var failed raft.ServerID // the leader that could not be reached
	for ctx.Err() == nil {
		address, id := f.leader()
		if address == "" || string(id) == f.self {
			f.pause(ctx, leaderPoll)
			continue
		}
		welcome, err := f.forward(ctx, string(address), string(id))
		switch {
		case welcome:
			failed, pause = "", leaderPoll
		case failed != id:
			failed, pause = id, leaderPoll
			f.log.Info("the leader does not take this node's requests", "leader", id, "address", address, "error", err)
		default:
			pause = min(2*pause, maxForwardPause)
		}
		f.pause(ctx, pause)
	}
}

func (f *forwarder) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// guestStream is a node's end of its stream to the leader.
type guestStream struct {
	conn   net.Conn
	term   uint64
	in     *bufio.Reader
	out    []byte
	parted bool // goodbye has been said

	broken  chan struct{} // closed when nothing more is read
	failure error         // why; valid then
}

// forward opens a stream to the leader and serves it until it breaks or another node leads. It reports
// whether the leader has welcomed this node.
func (f *forwarder) forward(ctx context.Context, address, id string) (welcome bool, err error) {
	s, err := f.open(ctx, address)
	if err != nil {
		return false, err
	}
	go func() {
		s.failure = f.read(s)
		close(s.broken)
	}()
	f.attached.Store(true)
	err = f.send(ctx, s, id)
	f.attached.Store(false)
	f.released()
	s.conn.Close()
	<-s.broken
	f.log.Debug("stream to the leader ended", "leader", id, "address", address, "error", err)
	return true, err
}

// open says hello to the leader and waits for its welcome.
func (f *forwarder) open(ctx context.Context, address string) (*guestStream, error) {
	dialing, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	c, _, err := f.dial(dialing, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	c.SetDeadline(time.Now().Add(2 * helloPatience))
	s := &guestStream{conn: c, in: bufio.NewReaderSize(c, readStep), broken: make(chan struct{})}
	if _, err := c.Write(appendNumber(nil, frameHello, f.queue.incarnation)); err != nil {
		c.Close()
		return nil, fmt.Errorf("say hello: %w", err)
	}
	var buffer []byte
	kind, body, err := readFrame(s.in, &buffer, func() {})
	if err == nil && kind != frameWelcome {
		err = errMalformed
	}
	if err == nil {
		s.term, err = readNumber(body)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("read welcome: %w", err)
	}
	c.SetDeadline(time.Time{})
	return s, nil
}

// send sends flights and pings until the stream breaks or another node leads.
func (f *forwarder) send(ctx context.Context, s *guestStream, leader string) error {
	for _, flight := range f.queue.outstanding(s.term) {
		s.out = appendFrame(s.out, frameSection, flight.section)
	}
	tick := time.NewTicker(guestTick)
	defer tick.Stop()
	known := time.Now()
	for {
		if _, now := f.leader(); string(now) == leader {
			known = time.Now()
		} else if now != "" || time.Since(known) > f.patience {
			return fmt.Errorf("it does not lead any more; %q does", now)
		}
		if !s.parted && f.parting() {
			s.parted = true
			s.out = appendFrame(s.out, frameGoodbye, nil)
		}
		for flight := f.take(s); flight != nil; flight = f.take(s) {
			s.out = appendFrame(s.out, frameSection, flight.section)
		}
		if err := s.flush(); err != nil {
			return fmt.Errorf("send to the leader: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.broken:
			return fmt.Errorf("read from the leader: %w", s.failure)
		case <-f.wake:
			continue
		case <-tick.C:
			s.out = appendFrame(s.out, framePing, nil)
		}
	}
}

func (f *forwarder) take(s *guestStream) *flight {
	return f.queue.take(s.term, f.clock.Monotonic(), false, 0)
}

func (s *guestStream) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	err := writeSteadily(s.conn, s.out)
	s.out = s.out[:0]
	return err
}

// read delivers what the leader says until the stream ends.
func (f *forwarder) read(s *guestStream) error {
	var buffer []byte
	for {
		alive := func() { s.conn.SetReadDeadline(time.Now().Add(streamSilence)) }
		alive()
		kind, body, err := readFrame(s.in, &buffer, alive)
		if err != nil {
			return err
		}
		switch kind {
		case framePing:
		case frameAnswer:
			section, err := readAnswer(body, f.queue.incarnation)
			if err != nil {
				return err
			}
			if err := f.replied(section); err != nil {
				return err
			}
			f.nudge()
		case frameRefused:
			first, err := readNumber(body)
			if err != nil {
				return err
			}
			f.queue.refused(s.term, first, f.clock.Monotonic())
		case frameEvent:
			events, err := fsm.DecodeEvents(body, f.queue.incarnation)
			if err != nil {
				return err
			}
			f.ended(events)
		default:
			return errMalformed
		}
	}
}
