package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/internal/trial"
)

// A client that is aware of Redis Cluster finds the leader by itself, and follows when it changes or dies.
func TestClusterClientFollowsTheLeader(t *testing.T) {
	t.Parallel()
	s := form(t, "--cluster-commands", "yes")
	first := s.leader()
	s.told(first)
	s.dial(first).want("OK", "SEM.CREATE", "pool", 1_000_000)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.members[s.followers()[0]].addr}})
	defer func() { _ = c.Close() }()
	s.speaksTo(c, first)

	second := s.followers()[0]
	s.dial(first).want("OK", "SEM.NODE", "TRANSFER", fmt.Sprint("n", second))
	s.told(second)
	s.speaksTo(c, second)

	s.kill(second)
	third := s.leader()
	s.told(third)
	s.speaksTo(c, third)
}

// slotsLeader is whom CLUSTER SLOTS of a node names first.
func (s *several) slotsLeader(i int) (string, error) {
	slots, ok := s.dial(i).do("CLUSTER", "SLOTS").([]any)
	if !ok || len(slots) != 1 {
		return "", fmt.Errorf("CLUSTER SLOTS at node %d: %v, want one range", i, slots)
	}
	shard, _ := slots[0].([]any)
	if len(shard) < 3 || shard[0] != int64(0) || shard[1] != int64(16383) {
		return "", fmt.Errorf("CLUSTER SLOTS at node %d: %v, want all slots", i, shard)
	}
	first, _ := shard[2].([]any)
	if len(first) < 2 {
		return "", fmt.Errorf("CLUSTER SLOTS at node %d: %v, want a node", i, shard)
	}
	return net.JoinHostPort(fmt.Sprint(first[0]), fmt.Sprint(first[1])), nil
}

// told waits until all nodes name this one as the leader.
func (s *several) told(leader int) {
	s.Helper()
	trial.Await(s.T, func() error {
		for _, i := range s.running() {
			got, err := s.slotsLeader(i)
			if err != nil {
				return err
			}
			if want := s.members[leader].addr; got != want {
				return fmt.Errorf("CLUSTER SLOTS at node %d: got the leader %s, want %s", i, got, want)
			}
		}
		return nil
	})
}

// served is how many commands a node has carried out: by that a test sees where a client goes.
func (s *several) served(i int) int64 {
	s.Helper()
	text := fmt.Sprint(s.dial(i).do("INFO", "stats"))
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "total_commands_processed:"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				s.Fatal(err)
			}
			return n
		}
	}
	s.Fatalf("INFO stats has no total_commands_processed:\n%s", text)
	return 0
}

// speaksTo waits until what the client asks goes to this node. It must be granted wherever it goes, unless
// nothing listens there any more.
func (s *several) speaksTo(c *redis.ClusterClient, node int) {
	s.Helper()
	trial.Await(s.T, func() error {
		const requests = 20
		before := s.served(node)
		for range requests {
			got, err := c.Do(context.Background(), "SEM.ACQUIRE", "pool").Result()
			if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF) {
				c.ReloadState(context.Background())
				return err
			}
			if _, refused := asGrant(got); err != nil || refused != nil {
				s.Fatalf("acquire: got %v, %v, want a grant", got, err)
			}
		}
		if served := s.served(node) - before; served < requests {
			c.ReloadState(context.Background())
			return fmt.Errorf("node %d has carried out %d commands of %d", node, served, requests)
		}
		return nil
	})
}
