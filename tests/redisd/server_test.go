package redisd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	orphanEnv = "REDISD_TEST_ORPHAN"
	// silence is how long to listen for what must not come.
	silence = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		orphan()
	}
	goleak.VerifyTestMain(m)
}

// orphan is the process that TestAServerDiesWithItsTest kills.
func orphan() {
	s, err := New(os.Getenv(orphanEnv))
	if err == nil {
		err = s.Start()
	}
	fmt.Fprintln(os.Stdout, s.Pid(), err)
	select {}
}

func do(t *testing.T, s *Server, args ...any) string {
	t.Helper()
	got, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%v: got %v, want a reply\n%s", args, err, s.Log())
	}
	return fmt.Sprint(got)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAServerComesBackWithWhatIsOnDisk(t *testing.T) {
	s := Run(t, Durable()...)
	do(t, s, "SET", "a", "1")

	must(t, s.Restart())
	if got := do(t, s, "GET", "a"); got != "1" {
		t.Errorf("after a restart: got %q, want 1", got)
	}
	must(t, s.RestartEmpty())
	if got := do(t, s, "EXISTS", "a"); got != "0" {
		t.Errorf("after a loss of the disk: got %q, want 0", got)
	}
}

func TestServersDoNotShareAnAddress(t *testing.T) {
	a, b := Run(t), Run(t)

	do(t, a, "SET", "a", "1")

	if got := do(t, b, "EXISTS", "a"); got != "0" || a.Addr == b.Addr {
		t.Errorf("got %s at %s and %s, want two servers", got, a.Addr, b.Addr)
	}
}

func TestAPausedServerIsSilentAndGoesOn(t *testing.T) {
	s := Run(t)
	c, err := resp.Dial(s.Addr)
	must(t, err)
	defer c.Close()

	must(t, s.Pause())
	must(t, c.Send("PING"))
	if !c.Silent(silence) {
		t.Error("while paused: got an answer, want none")
	}
	must(t, s.Resume())

	if got, err := c.Receive(patience); err != nil || got != resp.Simple("PONG") {
		t.Errorf("when it goes on: got %v, %v, want PONG", got, err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	s, err := New(t.TempDir(), "--maxmemory-policy", "nonsense")
	must(t, err)

	if err := s.Start(); err == nil || !strings.Contains(err.Error(), "maxmemory-policy") {
		t.Errorf("got %v, want the setting named", err)
	}
}

func TestAServerDiesWithItsTest(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), orphanEnv+"="+t.TempDir())
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	buf := make([]byte, 100)
	n, err := out.Read(buf)
	must(t, err)
	pid, err := strconv.Atoi(strings.Fields(string(buf[:n]))[0])
	must(t, err)

	must(t, c.Process.Kill())
	_ = c.Wait()

	must(t, until("the server ends", func() bool { return ended(pid) }))
}

// ended says whether a process is gone, or dead and not yet buried by whoever has inherited it.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ")
}

func TestSentinelsReplaceAMasterThatDies(t *testing.T) {
	s := RunSentinels(t)
	old, err := s.Leader()
	must(t, err)
	do(t, old, "SET", "a", "1")
	do(t, old, "WAIT", "2", "0")

	old.Kill()
	must(t, s.Moved(old))

	now, err := s.Leader()
	must(t, err)
	if got := do(t, now, "GET", "a"); got != "1" {
		t.Errorf("at the new master: got %q, want 1", got)
	}
	must(t, old.Start())
	must(t, until("the old master follows", func() bool { return old.Field("role") == "slave" }))
	must(t, until("it may be asked again", func() bool { return s.Failover() == nil }))
}

func TestAClusterReshardsAndFailsOver(t *testing.T) {
	c := RunCluster(t)
	from, err := c.Owner("{a}1")
	must(t, err)
	for i := range 25 {
		do(t, from, "SET", fmt.Sprintf("{a}%d", i), i)
	}
	to := c.Servers[0]
	if to == from {
		to = c.Servers[1]
	}
	slot, err := c.Slot("{a}1")
	must(t, err)

	must(t, c.Reshard(slot, to))

	if now, err := c.Owner("{a}1"); now != to || err != nil {
		t.Fatalf("owner after resharding: got %v, %v, want %s", now, err, to.Addr)
	}
	if got := do(t, to, "GET", "{a}24"); got != "24" {
		t.Errorf("a key that moved: got %q, want 24", got)
	}
	to.Kill()
	must(t, c.Moved("{a}1", to))
	now, err := c.Owner("{a}1")
	must(t, err)
	if got := do(t, now, "GET", "{a}24"); got != "24" {
		t.Errorf("after a failover: got %q, want 24", got)
	}
}
