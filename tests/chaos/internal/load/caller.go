package load

import (
	"math/rand/v2"
	"os"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/check"
	"github.com/semserver/semserver/tests/chaos/internal/history"
	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// extraPatience is how much longer a caller listens than an answer may take, so that one that comes
	// too late is told from one that does not come.
	extraPatience = time.Second
	// redialAfter is the pause after a node that could not be reached.
	redialAfter = 30 * time.Millisecond
)

// unreachable is the code of a request that was never sent. It is not recorded.
const unreachable = "unreachable"

// Caller sends requests to one node at a time and records what becomes of them. It belongs to one
// goroutine.
type Caller struct {
	ID      int
	Addrs   []string // of the nodes
	Setup   check.Setup
	History *history.Recorder
	Random  *rand.Rand

	node int // counts from 1; 0: none chosen
	conn *resp.Conn
}

// Turn makes the caller go to this node.
func (c *Caller) Turn(node int) {
	if c.node != node {
		c.Close()
		c.node = node
	}
}

// TurnAway makes the caller go to another node, if there is one.
func (c *Caller) TurnAway() {
	next := 1 + c.Random.IntN(len(c.Addrs))
	if next == c.node {
		next = 1 + next%len(c.Addrs)
	}
	c.Close()
	c.node = next
}

// Close ends the connection. The caller may go on with a new one.
func (c *Caller) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Ask sends a request and returns what became of it. A caller whose request could not be sent turns
// to another node.
func (c *Caller) Ask(o history.Op) history.Result {
	return c.send(o, check.Patience(c.Setup, o)+extraPatience, history.Silent)
}

// HangUp sends a request and ends the connection if there is no answer soon.
func (c *Caller) HangUp(o history.Op, soon time.Duration) history.Result {
	return c.send(o, soon, history.HungUp)
}

func (c *Caller) send(o history.Op, patience time.Duration, impatient string) history.Result {
	if !c.connect() {
		return history.Result{Outcome: history.Refused, Code: unreachable}
	}
	o.Client, o.Node, o.Call = c.ID, c.node, c.History.Now()
	o.Result = c.exchange(o, patience, impatient)
	o.Return = c.History.Now()
	c.History.Add(o)
	if o.Result.Outcome == history.Unknown {
		c.Close()
	}
	return o.Result
}

func (c *Caller) connect() bool {
	if c.conn != nil {
		return true
	}
	if c.node == 0 {
		c.node = 1 + c.Random.IntN(len(c.Addrs))
	}
	conn, err := resp.Dial(c.Addrs[c.node-1])
	if err != nil {
		c.TurnAway()
		<-time.After(redialAfter)
		return false
	}
	c.conn = conn
	return true
}

func (c *Caller) exchange(o history.Op, patience time.Duration, impatient string) history.Result {
	broken := func(err error) history.Result {
		return history.Result{Outcome: history.Unknown, Code: history.Broken, Text: err.Error()}
	}
	if err := c.conn.Send(words(o)...); err != nil {
		return broken(err)
	}
	reply, err := c.conn.Receive(patience)
	if os.IsTimeout(err) {
		return history.Result{Outcome: history.Unknown, Code: impatient}
	}
	if err != nil {
		return broken(err)
	}
	return read(o, reply)
}
