package node

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Trio is a cluster of three nodes on one machine.
type Trio struct {
	Nodes []*Node

	binary string
	lives  []life
}

// life is what a node is started with, each time.
type life struct {
	addr, data string
	flags      []string
}

// StartTrio forms a cluster with data below a folder, and returns once each node serves clients.
func StartTrio(binary, folder string) (*Trio, error) {
	t := &Trio{binary: binary, Nodes: make([]*Node, 3)}
	var peers []string
	for i := range t.Nodes {
		// Each has an IP address of its own: whoever dials has another one, and takes no port away while a
		// node is down.
		ip := fmt.Sprintf("127.0.6.%d", i+1)
		addr, err := FreeAddrOn(ip)
		if err != nil {
			return nil, err
		}
		peer, err := FreeAddrOn(ip)
		if err != nil {
			return nil, err
		}
		peers = append(peers, peer)
		t.lives = append(t.lives, life{addr: addr, data: filepath.Join(folder, fmt.Sprint("n", i))})
	}
	for i := range t.Nodes {
		t.lives[i].flags = []string{
			"--node-id", fmt.Sprint("n", i), "--peer-listen", peers[i],
			"--bootstrap-expect", "3", "--join", strings.Join(peers, ","),
		}
		if err := t.Launch(i); err != nil {
			t.Kill()
			return nil, err
		}
	}
	for _, n := range t.Nodes {
		if err := n.Ready(); err != nil {
			t.Kill()
			return nil, err
		}
	}
	return t, nil
}

// Launch starts a node, also one that has run before. It is ready later.
func (t *Trio) Launch(i int) (err error) {
	l := t.lives[i]
	t.Nodes[i], err = Launch(t.binary, l.addr, l.data, l.flags...)
	return err
}

// Addrs are where clients connect.
func (t *Trio) Addrs() []string {
	var all []string
	for _, l := range t.lives {
		all = append(all, l.addr)
	}
	return all
}

// Kill ends all of them as a failure of the power does.
func (t *Trio) Kill() {
	for _, n := range t.Nodes {
		if n != nil {
			n.Kill()
		}
	}
}

// Complete starts the nodes that do not run, and returns once each serves clients.
func (t *Trio) Complete() error {
	var errs []error
	for i, n := range t.Nodes {
		select {
		case <-n.Exited():
			errs = append(errs, t.Launch(i))
		default:
		}
	}
	for _, n := range t.Nodes {
		errs = append(errs, n.Ready())
	}
	return errors.Join(errs...)
}
