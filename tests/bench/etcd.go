package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
)

// etcdLoad is how long one run of locks takes.
const etcdLoad = 3 * time.Second

// etcdCluster is an etcd on this machine, and the program that puts locks on it.
type etcdCluster struct {
	commands []*exec.Cmd
	clients  []string
	program  string
}

// lookForEtcd says so before anything is measured when there is no etcd.
func lookForEtcd() error {
	if _, err := exec.LookPath("etcd"); err != nil {
		return fmt.Errorf("there is no etcd to compare with: install it (in Debian: apt-get install etcd-server), or leave it out by -etcd=false: %w", err)
	}
	return nil
}

// startEtcd starts so many nodes of etcd, and builds what loads them.
func (b *bench) startEtcd(count int) (*etcdCluster, error) {
	c := &etcdCluster{program: filepath.Join(b.folder, "etcd-locks")}
	b.progress("building the load for etcd")
	if out, err := exec.Command("go", "-C", "tests/bench/etcd", "build", "-o", c.program, ".").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the load for etcd (run this from the root of the repository): %w\n%s", err, out)
	}
	var peers, members []string
	for i := range count {
		client, err := node.FreeAddr()
		if err != nil {
			return nil, err
		}
		peer, err := node.FreeAddr()
		if err != nil {
			return nil, err
		}
		c.clients, peers = append(c.clients, client), append(peers, peer)
		members = append(members, fmt.Sprintf("e%d=http://%s", i, peer))
	}
	for i := range count {
		data, err := os.MkdirTemp(b.folder, "etcd-")
		if err != nil {
			return nil, fmt.Errorf("make a data directory: %w", err)
		}
		command := exec.Command("etcd", "--name", "e"+strconv.Itoa(i), "--data-dir", data,
			"--listen-client-urls", "http://"+c.clients[i], "--advertise-client-urls", "http://"+c.clients[i],
			"--listen-peer-urls", "http://"+peers[i], "--initial-advertise-peer-urls", "http://"+peers[i],
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new")
		if err := command.Start(); err != nil {
			c.stop()
			return nil, fmt.Errorf("start etcd: %w", err)
		}
		c.commands = append(c.commands, command)
	}
	return c, c.ready()
}

// ready waits until every node takes connections.
func (c *etcdCluster) ready() error {
	for _, addr := range c.clients {
		for deadline := time.Now().Add(30 * time.Second); ; {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				_ = conn.Close() // nothing was said
				break
			}
			if time.Now().After(deadline) {
				c.stop()
				return fmt.Errorf("start etcd: %w", err)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return nil
}

// load returns pairs of lock and unlock per second, each client with a connection and a lock of its own.
func (c *etcdCluster) load(ctx context.Context, p place) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var complaint strings.Builder
	program := exec.CommandContext(ctx, c.program, "-endpoints", strings.Join(c.clients, ","), "-at", string(p),
		"-workers", strconv.Itoa(connections), "-for", etcdLoad.String())
	program.Stderr = &complaint
	out, err := program.Output()
	if err != nil {
		return 0, fmt.Errorf("load etcd: %w: %s", err, complaint.String())
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

func (c *etcdCluster) stop() {
	for _, command := range c.commands {
		// It keeps nothing that is needed, and its exit status says only that it was killed.
		_ = command.Process.Kill()
		_ = command.Wait()
	}
}
