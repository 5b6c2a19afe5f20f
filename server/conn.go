package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/semaphore"
)

const (
	// keepRun is how much room for runs an idle connection keeps.
	keepRun = 16
	// restAfter is how long a silent connection keeps its read buffer, at most. Borrowing one anew
	// costs a system call more, which a client that speaks often should not pay.
	restAfter = time.Second
)

var (
	// errQuit ends a connection after its replies have been written.
	errQuit = errors.New("connection is to be closed")
	// errStopping ends a connection because the server stops.
	errStopping = errors.New("server is stopping")
)

// conn is one client. Its fields belong to the goroutine that serves it, but for those at the end.
type conn struct {
	server *Server
	net    net.Conn
	socket *socket
	id     uint64
	remote string
	local  string
	born   time.Time

	in       reader
	out      output
	gone     error     // the client has hung up; what was read before is still carried out
	settled  bool      // has completed a command
	partial  time.Time // when the command being received was first found incomplete
	readBy   time.Time // the deadlines in force; zero: none
	writeBy  time.Time
	rules    rules
	words    arguments // of the command that is being parsed
	run      []call
	requests []semaphore.Request
	multi    *transaction
	channels subscriptions

	waiting atomic.Pointer[wait]    // the command that stands in line
	spoke   atomic.Int64            // when the client was last heard, in Unix milliseconds
	last    atomic.Pointer[command] // what it said

	mu    sync.Mutex // guards what follows
	shown identity
}

// identity is what a client says about itself, for others to see.
type identity struct {
	name, libName, libVersion string
	db, proto                 int
}

// serve reads and carries out commands until the connection ends, and closes it.
func (c *conn) serve() {
	defer c.net.Close()
	for {
		err := c.execute()
		if e := c.flush(); err == nil {
			err = e
		}
		if errors.Is(err, errQuit) {
			c.linger()
		}
		if err != nil {
			return
		}
		if err := c.read(); err != nil {
			return
		}
	}
}

// execute carries out every command that has been received completely.
func (c *conn) execute() error {
	for {
		args, err := c.in.next()
		if err != nil {
			return c.breach(err)
		}
		if args == nil {
			return c.carryOut()
		}
		if err := c.dispatch(args); err != nil {
			return err
		}
	}
}

// dispatch adds a request to the run, or carries out the run and then the command.
func (c *conn) dispatch(args [][]byte) error {
	c.settled, c.partial = true, time.Time{}
	cmd, refusal := c.resolve(args)
	if c.multi != nil && !c.multi.running && (refusal != nil || !cmd.flags.has(flagNoQueue)) {
		return c.multi.add(c, cmd, args, refusal)
	}
	if refusal == nil {
		c.server.metrics.commands[cmd.index].Inc()
	}
	if refusal == nil && cmd.parse != nil {
		var q call
		if q, refusal = cmd.request(&c.rules, &c.words, args[1:]); refusal == nil {
			return c.enlist(q)
		}
	}
	if err := c.carryOut(); err != nil {
		return err
	}
	if refusal != nil {
		c.refuse(refusal)
		return nil
	}
	return cmd.run(c, args)
}

// resolve finds the command, and the reason why it may not be carried out.
func (c *conn) resolve(args [][]byte) (*command, *semaphore.Error) {
	cmd := c.server.table.find(args[0])
	if c.in.anon && (cmd == nil || !cmd.flags.has(flagNoAuth)) {
		return nil, errNoAuth
	}
	if cmd == nil {
		return nil, errUnknown(args)
	}
	if !cmd.fits(len(args)) {
		return nil, errWrongNumber(cmd.name)
	}
	if len(args) > 1 && cmd.byName != nil {
		sub := cmd.sub(args[1])
		if sub == nil {
			return nil, errUnknownSub(cmd, args[1])
		}
		if !sub.fits(len(args)) {
			return nil, errWrongNumber(cmd.name + "|" + sub.name)
		}
		cmd = sub
	}
	if c.channels.confined(c.out.proto) && !cmd.flags.has(flagSubscribed) {
		return nil, errConfined(cmd.name)
	}
	if c.last.Load() != cmd { // looking costs far less than storing
		c.last.Store(cmd)
	}
	return cmd, nil
}

// enlist adds a request to the run, and carries the run out where it must end.
func (c *conn) enlist(q call) error {
	if c.multi != nil {
		q.stayOut()
	}
	c.run = append(c.run, q)
	if q.last || len(c.run) == semaphore.MaxRun {
		return c.carryOut()
	}
	return nil
}

// carryOut passes the run to the backend and encodes its replies.
func (c *conn) carryOut() error {
	if len(c.run) == 0 {
		return c.relieve()
	}
	for i := range c.run {
		c.requests = append(c.requests, c.run[i].request)
	}
	w := c.mayWait()
	defer c.waiting.Store(nil)
	replies := c.server.backend.Do(c.requests)
	for i, r := range replies {
		q := &c.run[i]
		if line, ok := r.Value.(*semaphore.Waiting); ok {
			return c.await(*q, line, w)
		}
		c.server.metrics.decided(q.request, r)
		c.out.answer(q, r)
	}
	clear(c.run)
	clear(c.requests)
	c.run, c.requests = c.run[:0], c.requests[:0]
	return c.relieve()
}

// refuse answers a command that was not carried out.
func (c *conn) refuse(e *semaphore.Error) {
	c.server.metrics.refused(e.Code)
	c.out.fail(e)
}

// breach answers a breach of the protocol, behind the commands that came before it.
func (c *conn) breach(err error) error {
	if e := c.carryOut(); e != nil {
		return e
	}
	c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "%v", err))
	return errQuit
}

// relieve writes the replies where many have gathered, before more commands are carried out.
func (c *conn) relieve() error {
	if c.out.len() < c.server.cfg.MaxOutput {
		return nil
	}
	return c.flush()
}

// flush writes the replies. Before it tells anybody of a grant it looks whether the client is still
// there; grants that were not told are given back.
func (c *conn) flush() error {
	if c.out.len() == 0 {
		return nil
	}
	if len(c.out.grants) > 0 && (c.gone != nil || c.socket.hungUp()) {
		c.out.withdraw(c.giveBack)
	}
	c.renewWriteDeadline()
	n, err := c.net.Write(c.out.buf)
	if err != nil {
		c.out.unwritten(n, c.giveBack)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.server.cfg.Logger.Warn("client does not read its replies; connection closed", "client", c.remote, "id", c.id)
	}
	c.out.reset()
	return err
}

func (c *conn) giveBack(key string, g *semaphore.Grant) {
	c.server.metrics.givenBack.Inc()
	c.server.backend.GiveBack(key, g)
}

// read waits for more from the client.
func (c *conn) read() error {
	if c.gone != nil {
		return c.gone
	}
	c.in.shrink()
	now := time.Now()
	if !c.in.idle() && c.partial.IsZero() {
		c.partial = now
	}
	deadline := c.deadline(now)
	if c.in.buf != nil && c.in.idle() {
		soon := within(restAfter, now, c.readBy)
		if deadline.IsZero() || soon.Before(deadline) {
			err := c.readUntil(soon)
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
		c.rest()
	}
	return c.readUntil(deadline)
}

// deadline is when a client that is silent from now on must have spoken.
func (c *conn) deadline(now time.Time) time.Time {
	cfg := &c.server.cfg
	switch {
	case (c.in.anon || !c.settled) && cfg.HandshakeTimeout > 0:
		return c.born.Add(cfg.HandshakeTimeout)
	case !c.partial.IsZero() && cfg.HandshakeTimeout > 0:
		return c.partial.Add(cfg.HandshakeTimeout)
	case cfg.IdleTimeout > 0:
		return now.Add(cfg.IdleTimeout)
	}
	return time.Time{}
}

// readUntil reads once. The order of its first two steps and the reverse one of Server.Shutdown make
// sure that one of them sees the other.
func (c *conn) readUntil(deadline time.Time) error {
	c.setReadDeadline(deadline)
	if c.server.stopping() {
		return errStopping
	}
	n, err := c.in.fill(c.net)
	if n > 0 {
		c.spoke.Store(time.Now().UnixMilli())
		c.gone = err
		return nil
	}
	if c.server.stopping() {
		return errStopping
	}
	return err
}

// rest gives memory back that a silent client does not need.
func (c *conn) rest() {
	c.in.rest()
	if cap(c.run) > keepRun {
		c.run, c.requests = nil, nil
	}
}

// linger lets the last words reach the client: closing a socket with unread bytes in it resets the
// connection, which discards what is still on its way.
func (c *conn) linger() {
	const patience, most = 200 * time.Millisecond, 1 << 20
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.setReadDeadline(time.Now().Add(patience))
	if c.server.stopping() {
		return
	}
	_, _ = io.CopyN(io.Discard, c.net, most) // whatever comes, it is closed next
}
