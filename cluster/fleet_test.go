package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

// fleetPatience bounds what must happen by itself. It says only that something hangs.
const fleetPatience = 20 * time.Second

// fleet is some nodes of a test, each with a directory and an address of its own, by letter. They
// talk over real sockets.
type fleet struct {
	t     *testing.T
	cfg   map[string]Config
	nodes map[string]*Node
	said  map[string]*trial.Journal
	fatal map[string]chan error
}

// newFleet makes up nodes a, b, … that all join each other. None is started.
func newFleet(t *testing.T, size, expect int) *fleet {
	t.Helper()
	f := &fleet{
		t: t, cfg: map[string]Config{}, nodes: map[string]*Node{},
		said: map[string]*trial.Journal{}, fatal: map[string]chan error{},
	}
	t.TempDir() // the first of a test removes them all, and must be registered before stopAll
	t.Cleanup(f.stopAll)
	for i := range size {
		f.prepare(string(rune('a'+i)), expect)
	}
	return f
}

// prepare makes up a node that joins all that were made up before it, and is joined by them.
func (f *fleet) prepare(name string, expect int) {
	f.t.Helper()
	cfg := testConfig(f.t.TempDir())
	cfg.NodeID = "node-" + name
	cfg.PeerListen = freeAddress(f.t)
	cfg.ClientAdvertise = name + ".example:7360"
	cfg.BootstrapExpect = expect
	cfg.ElectionTimeout = 150 * time.Millisecond
	f.cfg[name] = cfg
	var all []string
	for _, c := range f.cfg {
		all = append(all, c.PeerListen)
	}
	for other, c := range f.cfg {
		c.Join = slices.Sorted(slices.Values(all))
		f.cfg[other] = c
	}
}

// freeAddress returns an address that nobody listens on: a port that was free, on an address within
// 127.0.0.0/8 that nobody else is likely to use.
func freeAddress(t *testing.T) string {
	t.Helper()
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// edit changes the configuration of a node that does not run.
func (f *fleet) edit(name string, by func(*Config)) {
	c := f.cfg[name]
	by(&c)
	f.cfg[name] = c
}

// open starts a node and returns what Open says.
func (f *fleet) open(name string) error {
	cfg := f.cfg[name]
	if f.said[name] == nil {
		f.said[name] = &trial.Journal{}
	}
	fatal := make(chan error, 1)
	f.fatal[name] = fatal
	cfg.Fatal = func(err error) { fatal <- err }
	cfg.Logger = slog.New(slog.NewTextHandler(f.said[name], nil))
	cfg.Metrics = NewMetrics(prometheus.NewRegistry())
	n, err := Open(cfg)
	if err == nil {
		f.nodes[name] = n
	}
	return err
}

func (f *fleet) start(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := f.open(name); err != nil {
			f.t.Fatalf("open %s: %v", name, err)
		}
	}
}

func (f *fleet) stop(names ...string) {
	f.t.Helper()
	for _, name := range names {
		n := f.nodes[name]
		delete(f.nodes, name)
		if err := n.Close(); err != nil {
			f.t.Errorf("close %s: %v", name, err)
		}
	}
}

func (f *fleet) stopAll() {
	for name := range f.nodes {
		f.stop(name)
	}
	if f.t.Failed() {
		for name, j := range f.said {
			f.t.Logf("%s said:\n%s", name, j)
		}
	}
}

// wipe gives a node that does not run an empty directory.
func (f *fleet) wipe(name string) { f.edit(name, func(c *Config) { c.DataDir = f.t.TempDir() }) }

// eventually waits for a condition, which says what is still missing.
func (f *fleet) eventually(missing func() string) {
	f.t.Helper()
	trial.Await(f.t, func() error {
		if what := missing(); what != "" {
			return errors.New(what)
		}
		return nil
	})
}

// shape is the membership as a running node sees it: letters of voters, and in brackets of others.
func (f *fleet) shape(name string) string {
	n, runs := f.nodes[name]
	if !runs {
		return ""
	}
	var voters, others []string
	for _, s := range n.raft.GetConfiguration().Configuration().Servers {
		letter := f.letter(string(s.ID))
		if s.Suffrage == raft.Voter {
			voters = append(voters, letter)
			continue
		}
		others = append(others, letter)
	}
	slices.Sort(voters)
	slices.Sort(others)
	all := strings.Join(voters, "")
	if len(others) > 0 {
		all += "(" + strings.Join(others, "") + ")"
	}
	return all
}

// letter returns which running node has an id; "?": none.
func (f *fleet) letter(id string) string {
	for name, n := range f.nodes {
		if n.id.ID == id {
			return name
		}
	}
	return "?"
}

// wantShape waits until all running nodes agree on the membership and on a leader.
func (f *fleet) wantShape(want string) {
	f.t.Helper()
	f.eventually(func() string {
		for name := range f.nodes {
			if got := f.shape(name); got != want {
				return fmt.Sprintf("%s sees the members %q, want %q", name, got, want)
			}
		}
		if f.leader() == "" {
			return "there is no leader"
		}
		return ""
	})
}

// leader returns which running node leads and can decide.
func (f *fleet) leader() string {
	for name, n := range f.nodes {
		if n.proposer.leading() != nil {
			return name
		}
	}
	return ""
}

// leading waits for a leader.
func (f *fleet) leading() *Node {
	f.t.Helper()
	var name string
	f.eventually(func() string {
		if name = f.leader(); name == "" {
			return "there is no leader"
		}
		return ""
	})
	return f.nodes[name]
}

// wantSaid waits until a node has logged something.
func (f *fleet) wantSaid(name, text string) {
	f.t.Helper()
	f.eventually(func() string {
		if !strings.Contains(f.said[name].String(), text) {
			return fmt.Sprintf("%s did not say %q", name, text)
		}
		return ""
	})
}

// wantFatal waits until a node gives up for a reason.
func (f *fleet) wantFatal(name, text string) {
	f.t.Helper()
	select {
	case err := <-f.fatal[name]:
		if !strings.Contains(err.Error(), text) {
			f.t.Errorf("%s gave up because %q, want a reason that says %q", name, err, text)
		}
	case <-time.After(fleetPatience):
		f.t.Fatalf("%s did not give up; want a reason that says %q", name, text)
	}
}

// take acquires a permit through the leader and returns its token.
func (f *fleet) take(holder string) int64 {
	f.t.Helper()
	var token int64
	f.eventually(func() string {
		n := f.leading()
		reply := n.Do([]semaphore.Request{semaphore.Acquire{
			Key: "k", Holder: holder, Permits: 1, Lease: time.Hour, Create: true, Capacity: 1000,
		}})[0]
		if reply.Err != nil {
			return reply.Err.Error()
		}
		token = reply.Value.(*semaphore.Grant).Token
		return ""
	})
	return token
}

// clusters returns the cluster ids of all running nodes, each once.
func (f *fleet) clusters() []string {
	var all []string
	for _, n := range f.nodes {
		all = append(all, n.clusterID())
	}
	slices.Sort(all)
	return slices.Compact(all)
}
