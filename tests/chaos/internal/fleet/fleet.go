package fleet

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/proxy"
	"github.com/semserver/semserver/tests/internal/node"
)

const (
	// formTimeout is how long a cluster may take to find a leader. It is far beyond what it needs.
	formTimeout = 60 * time.Second
	// formLog is how many lines of each log are told if it does not.
	formLog = 60
	// pollEvery is how often a condition is looked at.
	pollEvery = 20 * time.Millisecond
)

// Config is what a Fleet is made of.
type Config struct {
	Binary string
	Nodes  int
	Dir    string   // for the data directories
	Flags  []string // of every node, beside those that the fleet sets
}

// Fleet is a cluster of processes. Nodes count from 1.
type Fleet struct {
	Net     *proxy.Network // between the nodes
	members []*member
}

// Open starts the nodes and returns once one of them leads.
func Open(cfg Config) (*Fleet, error) {
	network, err := proxy.New(cfg.Nodes)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Net: network}
	for i := 1; i <= cfg.Nodes; i++ {
		addr, err := node.FreeAddrOn(fmt.Sprintf("127.0.3.%d", i))
		if err != nil {
			network.Close()
			return nil, err
		}
		f.members = append(f.members, &member{
			binary: cfg.Binary, addr: addr, data: filepath.Join(cfg.Dir, fmt.Sprint("node", i)),
			flags: append(f.peerFlags(i, cfg.Nodes), cfg.Flags...),
		})
	}
	if err := f.form(); err != nil {
		return nil, errors.Join(err, f.Close(), errors.New(f.Logs(formLog)))
	}
	return f, nil
}

// peerFlags make node i one of n that find each other. A single node has no peers.
func (f *Fleet) peerFlags(i, n int) []string {
	label := []string{"--node-id", fmt.Sprint("node", i)}
	if n == 1 {
		return label
	}
	var all []string
	for j := 1; j <= n; j++ {
		all = append(all, f.Net.Advertise(j))
	}
	return append(label, "--peer-listen", f.Net.Listen(i), "--peer-advertise", f.Net.Advertise(i),
		"--join", strings.Join(all, ","), "--bootstrap-expect", strconv.Itoa(n))
}

func (f *Fleet) form() error {
	for i := range f.members {
		if err := f.Start(i + 1); err != nil {
			return err
		}
	}
	for i, m := range f.members {
		if err := m.process.Ready(); err != nil {
			return fmt.Errorf("node %d: %w", i+1, err)
		}
	}
	_, err := f.AwaitLeader(0)
	return err
}

// Size is the number of nodes.
func (f *Fleet) Size() int { return len(f.members) }

// Addr is where clients reach node i, whether or not it runs.
func (f *Fleet) Addr(i int) string { return f.members[i-1].addr }

// Addrs are those of all nodes, the first node's first.
func (f *Fleet) Addrs() []string {
	var all []string
	for _, m := range f.members {
		all = append(all, m.addr)
	}
	return all
}

// Leader is the node that says that it leads, in the highest term, and that term; 0, if none does.
func (f *Fleet) Leader() (leader int, term int64) {
	for i, m := range f.members {
		if !m.up() || m.paused {
			continue
		}
		if role, its, err := Role(m.addr); err == nil && role == "leader" && its > term {
			leader, term = i+1, its
		}
	}
	return leader, term
}

// AwaitLeader waits until a node leads in a term above this one.
func (f *Fleet) AwaitLeader(above int64) (int, error) {
	for began := time.Now(); time.Since(began) < formTimeout; {
		if leader, term := f.Leader(); term > above {
			return leader, nil
		}
		<-time.After(pollEvery)
	}
	return 0, fmt.Errorf("no node leads in a term above %d after %v; strangers to the network: %v\n%s",
		above, formTimeout, f.Net.Strangers(), f.Logs(40))
}

// Close mends what is broken, ends all nodes and the network, and says what they complained of.
func (f *Fleet) Close() error {
	var all []error
	for i, m := range f.members {
		m.kill()
		if err := m.sound(); err != nil {
			all = append(all, fmt.Errorf("node %d: %w", i+1, err))
		}
	}
	f.Net.Close()
	return errors.Join(all...)
}

// Log is what node i has written, in all its lives.
func (f *Fleet) Log(i int) string { return f.members[i-1].logged() }

// Up is whether node i runs, stopped or not.
func (f *Fleet) Up(i int) bool { return f.members[i-1].up() }

// Logs are the last lines that each node has written.
func (f *Fleet) Logs(lines int) string {
	var text strings.Builder
	for i, m := range f.members {
		fmt.Fprintf(&text, "--- log of node %d\n%s", i+1, m.tail(lines))
	}
	return text.String()
}
