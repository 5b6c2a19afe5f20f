package cluster

import (
	"context"
	"errors"
	"log/slog"
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
	var (
		mu    sync.Mutex
		found = map[string]sighting{}
		all   sync.WaitGroup
	)
	for _, address := range resolve(ctx, addresses) {
		all.Go(func() {
			var c card
			if _, err := m.network.Ask(ctx, address, query{Ask: askWho}, &c); err != nil || c.Node == "" {
				return
			}
			if c.Node == m.papers.ID {
				m.checkTwin(c, address)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if known, twice := found[c.Node]; !twice || known.at != known.Address {
				found[c.Node] = sighting{c, address}
			}
		})
	}
	all.Wait()
	var seen []sighting
	for _, s := range found {
		seen = append(seen, s)
	}
	slices.SortFunc(seen, func(a, b sighting) int { return compareNodes(a.card, b.card) })
	return seen
}

// resolve looks up the names among addresses: a name may stand for many nodes. What cannot be
// resolved is left as it is.
func resolve(ctx context.Context, addresses []string) []string {
	var all []string
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		hosts, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil || len(hosts) == 1 { // one is found by its name, which its certificate may have
			hosts = []string{host}
		}
		for _, h := range hosts {
			all = append(all, net.JoinHostPort(h, port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
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
	m.said.say(slog.LevelError, "this node's identity is in use elsewhere: a copy of its data directory", "address", at, "its_address", c.Address)
	if own, listed := m.own(); !listed || string(own.Address) != m.network.Address() {
		m.halt(errTwin)
	}
}

// jitter spreads a wait, so that nodes that began together do not stay in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// repeatComplaint is how often a complaint is logged at the most.
const repeatComplaint = 30 * time.Second

// complaints logs what an operator has to act on, once in a while.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	said map[string]time.Time
}

func newComplaints(log *slog.Logger) *complaints {
	return &complaints{log: log, said: make(map[string]time.Time)}
}

// say logs a message, unless it was logged a moment ago. There are some dozens of messages.
func (c *complaints) say(level slog.Level, message string, args ...any) {
	c.mu.Lock()
	fresh := time.Since(c.said[message]) >= repeatComplaint
	if fresh {
		c.said[message] = time.Now()
	}
	c.mu.Unlock()
	if fresh {
		c.log.Log(context.Background(), level, message, args...)
	}
}
