package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// sighting is a node that has said who it is.
type sighting struct {
	card
	at string // the address where it was asked
}

// look asks all addresses at once who is there, and returns who answered, each node once: where it says
// that it is reached, if it was found there. A node does not find itself.
func (m *membership) look(ctx context.Context, addresses []string) []sighting {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	l := &lookout{membership: m, asked: make(map[string]bool), found: make(map[string]sighting)}
	for _, address := range addresses {
		l.asking.Go(func() {
			for _, one := range resolve(ctx, address) {
				l.asking.Go(func() { l.ask(ctx, one) })
			}
		})
	}
	l.asking.Wait()
	seen := slices.Collect(maps.Values(l.found))
	slices.SortFunc(seen, func(a, b sighting) int { return compareNodes(a.card, b.card) })
	return seen
}

// lookout is one look around.
type lookout struct {
	*membership
	asking sync.WaitGroup

	mu    sync.Mutex
	asked map[string]bool     // by address
	found map[string]sighting // by id
}

// ask asks an address, unless it was asked already.
func (l *lookout) ask(ctx context.Context, address string) {
	if !l.first(address) {
		return
	}
	var c card
	if _, err := l.network.Ask(ctx, address, query{Ask: askWho}, &c); err != nil || c.Node == "" {
		return
	}
	if c.Node == l.papers.ID {
		l.checkTwin(c, address)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, twice := l.found[c.Node]; !twice || known.at != known.Address {
		l.found[c.Node] = sighting{c, address}
	}
}

func (l *lookout) first(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.asked[address]
	l.asked[address] = true
	return !again
}

// resolve looks up the name of an address, which may stand for many nodes. By its name it is asked in any
// case: a certificate may have nothing but that.
func resolve(ctx context.Context, address string) []string {
	all := []string{address}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	hosts, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(hosts) == 1 {
		return all
	}
	for _, h := range hosts {
		all = append(all, net.JoinHostPort(h, port))
	}
	return all
}

// addresses are all places where members of this node's cluster may be found.
func (m *membership) addresses() []string {
	all := slices.Clone(m.cfg.Join)
	for _, s := range m.configuration() {
		if address := string(s.Address); address != m.network.Address() {
			all = append(all, address)
		}
	}
	if founder := m.papers.read().Founder; founder != nil && founder.Node != m.papers.ID {
		all = append(all, founder.Address)
	}
	return all
}

// errTwin says that a data directory was copied.
var errTwin = errors.New("another process runs with this node's identity: a copy of its data directory is in use; stop one of them, and start it on an empty directory")

// checkTwin looks whether it was this very process that was found under this node's id. If not, the one
// that is not where the configuration has the member gives up.
func (m *membership) checkTwin(c card, at string) {
	if c.Life == m.life {
		return
	}
	m.say(slog.LevelError, "this node's identity is in use elsewhere: a copy of its data directory", "address", at, "its_address", c.Address)
	if own, listed := m.own(); !listed || string(own.Address) != m.network.Address() {
		m.halt(errTwin)
	}
}

// jitter spreads a wait, so that nodes that began together do not stay in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// repeatComplaint is how often a complaint is logged at the most.
const repeatComplaint = 30 * time.Second
