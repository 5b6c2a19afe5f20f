package redisd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Master is the name under which Sentinels know their master.
const Master = "main"

// sentinelSettings is the configuration of a Sentinel, which writes to the file that it is read from.
// It takes a silent master for dead after 500 ms.
const sentinelSettings = `sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s 500
sentinel failover-timeout %[1]s 3000
sentinel parallel-syncs %[1]s 2
`

// Sentinels are three Sentinels that watch a master and two replicas.
type Sentinels struct {
	Servers  []*Server // the master first, as long as there was no failover
	Watchers []*Server
}

// RunSentinels starts three servers with three Sentinels for the length of the test, and waits until the
// Sentinels know all of them. The settings are the servers'.
func RunSentinels(t testing.TB, settings ...string) *Sentinels {
	t.Helper()
	s := &Sentinels{}
	if err := s.start(t, settings); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Sentinels) start(t testing.TB, settings []string) error {
	dir := t.TempDir()
	for range 3 {
		r, err := New(dir, append([]string{"--repl-diskless-sync-delay", "0"}, settings...)...)
		if err != nil {
			return err
		}
		if len(s.Servers) > 0 {
			host, port, _ := strings.Cut(s.Servers[0].Addr, ":")
			r.args = append(r.args, "--replicaof", host, port)
		}
		s.Servers = append(s.Servers, r)
		t.Cleanup(r.Kill)
		if err := r.Start(); err != nil {
			return err
		}
	}
	for range 3 {
		w, err := s.watcher(dir)
		if err != nil {
			return err
		}
		s.Watchers = append(s.Watchers, w)
		t.Cleanup(w.Kill)
		if err := w.Start(); err != nil {
			return err
		}
	}
	return until("sentinels know each other and the replicas", s.agreed)
}

// watcher describes one Sentinel.
func (s *Sentinels) watcher(dir string) (*Server, error) {
	w, err := New(dir)
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(s.Servers[0].Addr, ":")
	file := filepath.Join(w.Dir, "sentinel.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, sentinelSettings, Master, host, port), 0o600); err != nil {
		return nil, fmt.Errorf("configure sentinel: %w", err)
	}
	own, ownPort, _ := strings.Cut(w.Addr, ":")
	w.args = []string{file, "--sentinel", "--bind", own, "--bind-source-addr", own, "--port", ownPort, "--protected-mode", "no", "--dir", w.Dir}
	return w, nil
}

// agreed says whether every Sentinel knows both replicas and both other Sentinels, and the replicas
// follow their master.
func (s *Sentinels) agreed() bool {
	for _, w := range s.Watchers {
		if w.Field("master0") != fmt.Sprintf("name=%s,status=ok,address=%s,slaves=2,sentinels=3", Master, s.Servers[0].Addr) {
			return false
		}
	}
	return strings.Count(s.Servers[0].Field("slave0")+s.Servers[0].Field("slave1"), "state=online") == 2
}

// Addrs are the addresses of the Sentinels.
func (s *Sentinels) Addrs() []string { return addrs(s.Watchers) }

// Leader is the server that the Sentinels call the master now.
func (s *Sentinels) Leader() (*Server, error) {
	for _, w := range s.Watchers {
		reply, err := w.Do("SENTINEL", "get-master-addr-by-name", Master)
		parts, ok := reply.([]any)
		if err != nil || !ok {
			continue
		}
		return find(s.Servers, fmt.Sprintf("%s:%s", parts...))
	}
	return nil, errors.New("no sentinel names a master")
}

// Failover has the Sentinels put another server in the place of the master, which stays alive, and
// waits until that one takes writes. To see a failover that nobody asked for, kill the leader and wait
// for [Sentinels.Moved].
func (s *Sentinels) Failover() error {
	old, err := s.Leader()
	if err != nil {
		return err
	}
	if _, err := s.Watchers[0].Do("SENTINEL", "failover", Master); err != nil {
		return fmt.Errorf("fail over: %w", err)
	}
	return s.Moved(old)
}

// Moved waits until another server than the old one is the master.
func (s *Sentinels) Moved(old *Server) error {
	return until("another master", func() bool {
		now, err := s.Leader()
		return err == nil && now != old && now.Field("role") == "master"
	})
}

func addrs(servers []*Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

func find(servers []*Server, addr string) (*Server, error) {
	for _, s := range servers {
		if s.Addr == addr {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no server of ours at %s", addr)
}
