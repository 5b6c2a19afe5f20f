package proxy

import (
	"fmt"
	"net"
	"sync"

	"github.com/semserver/semserver/tests/internal/node"
)

// Network is the links between n nodes. Its methods may be called at any time, by anybody.
type Network struct {
	listeners []net.Listener
	targets   []string // where nodes listen
	work      sync.WaitGroup

	mu        sync.Mutex
	rules     map[Link]Rule
	changed   chan struct{} // closed and replaced when rules change
	conns     map[*conn]struct{}
	strangers []string
	closed    bool
}

// New makes the links between n nodes, all of which let everything pass.
func New(n int) (*Network, error) {
	w := &Network{rules: map[Link]Rule{}, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	for i := 1; i <= n; i++ {
		target, err := node.FreeAddrOn(fmt.Sprintf("127.0.1.%d", i))
		if err != nil {
			w.Close()
			return nil, err
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.2.%d:0", i))
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("proxy of node %d: %w", i, err)
		}
		w.targets, w.listeners = append(w.targets, target), append(w.listeners, l)
	}
	for i, l := range w.listeners {
		w.work.Go(func() { w.accept(l, i+1) })
	}
	return w, nil
}

// Listen is where node i must listen for its peers, and dial from.
func (w *Network) Listen(i int) string { return w.targets[i-1] }

// Advertise is where the other nodes must dial node i.
func (w *Network) Advertise(i int) string { return w.listeners[i-1].Addr().String() }

// Set gives links a rule in place of the one they have.
func (w *Network) Set(rule Rule, links ...Link) {
	w.mu.Lock()
	for _, l := range links {
		w.rules[l] = rule
	}
	cut := w.notifyLocked()
	w.mu.Unlock()
	for _, c := range cut {
		c.reset()
	}
}

// Heal lets everything pass again.
func (w *Network) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.rules)
	w.notifyLocked()
}

// Strangers are connections that came from no node's address: a node that does not dial from where it
// listens cannot be told apart, and is refused.
func (w *Network) Strangers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.strangers...)
}

// Close ends all connections and waits until nothing is left of them.
func (w *Network) Close() {
	w.mu.Lock()
	w.closed = true
	w.notifyLocked()
	all := make([]*conn, 0, len(w.conns))
	for c := range w.conns {
		all = append(all, c)
	}
	w.mu.Unlock()
	for _, l := range w.listeners {
		l.Close()
	}
	for _, c := range all {
		c.reset()
	}
	w.work.Wait()
}

// notifyLocked wakes whoever heeds rules, and returns the connections that the rules end.
func (w *Network) notifyLocked() []*conn {
	close(w.changed)
	w.changed = make(chan struct{})
	var cut []*conn
	for c := range w.conns {
		if w.rules[c.link].Cut {
			cut = append(cut, c)
		}
	}
	return cut
}

// rule is that of a link, and a channel that is closed when rules change.
func (w *Network) rule(l Link) (Rule, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rules[l], w.changed
}

func (w *Network) accept(l net.Listener, to int) {
	for {
		dialled, err := l.Accept()
		if err != nil {
			return // closed
		}
		var from int
		source := dialled.RemoteAddr().(*net.TCPAddr).IP.String()
		if _, err := fmt.Sscanf(source, "127.0.1.%d", &from); err != nil || from < 1 || from > len(w.listeners) {
			w.refuse(dialled, fmt.Sprintf("%s dialled node %d", source, to))
			continue
		}
		c := newConn(w, Link{from, to}, dialled.(*net.TCPConn))
		if !w.admit(c) {
			c.reset()
			continue
		}
		w.work.Go(func() {
			defer w.forget(c)
			c.serve(w.targets[to-1])
		})
	}
}

func (w *Network) admit(c *conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.rules[c.link].Cut {
		return false
	}
	w.conns[c] = struct{}{}
	return true
}

func (w *Network) forget(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *Network) refuse(c net.Conn, why string) {
	w.mu.Lock()
	w.strangers = append(w.strangers, why)
	w.mu.Unlock()
	c.Close()
}
