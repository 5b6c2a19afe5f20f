package load

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoadsThatCannotBeAreRefused(t *testing.T) {
	good := Config{Clients: 1, Pipeline: 1, Semaphores: 1, For: time.Second}
	if err := good.Check(); err != nil {
		t.Fatalf("got %v, want nil", err)
	}
	for name, change := range map[string]func(*Config){
		"no clients":        func(c *Config) { c.Clients = 0 },
		"no pipeline":       func(c *Config) { c.Pipeline = 0 },
		"no semaphores":     func(c *Config) { c.Semaphores = 0 },
		"no time":           func(c *Config) { c.For = 0 },
		"negative":          func(c *Config) { c.Hold = -1 },
		"negative rate":     func(c *Config) { c.Rate = -1 },
		"wait and pipeline": func(c *Config) { c.Wait, c.Pipeline = time.Second, 2 },
		"wait for nothing":  func(c *Config) { c.Wait, c.AcquiresOnly = time.Second, true },
		"endless redis":     func(c *Config) { c.Redis, c.AcquiresOnly = true, true },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
		if _, err := Run(t.Context(), c); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}

func TestRepliesAreRead(t *testing.T) {
	wire := "+OK\r\n-NOSEM no\r\n:7\r\n$-1\r\n*-1\r\n$3\r\nabc\r\n*3\r\n$1\r\nw\r\n:5\r\n*1\r\n*2\r\n:0\r\n:0\r\n:8\r\n"
	c := &conn{in: bufio.NewReader(strings.NewReader(wire))}
	var got []reply
	for range 8 {
		r, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []reply{
		{kind: kindStatus}, {kind: kindError, text: "NOSEM no"}, {kind: kindNumber, number: 7}, {}, {},
		{kind: kindText, text: "abc"}, {kind: kindArray}, {kind: kindNumber, number: 8},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, wrong := range []string{"", "x\r\n", "\r\n", ":x\r\n", "$99999999\r\n", "$3\r\na", "*2\r\n:1\r\n", "?1\r\n"} {
		c := &conn{in: bufio.NewReader(strings.NewReader(wrong))}
		if r, err := c.read(); err == nil {
			t.Errorf("%q: got %+v, want an error", wrong, r)
		}
	}
}

func TestCommandsAreWritten(t *testing.T) {
	c := &conn{}
	c.add("SEM.ACQUIRE", "k", int64(-12))
	c.add("PING")

	want := "*3\r\n$11\r\nSEM.ACQUIRE\r\n$1\r\nk\r\n$3\r\n-12\r\n*1\r\n$4\r\nPING\r\n"
	if string(c.out) != want {
		t.Errorf("got %q, want %q", c.out, want)
	}
}

func TestOnlyWhatHappensWhileItCountsIsCounted(t *testing.T) {
	r := newRecord("a:1")
	done := &round{acquire: []time.Duration{time.Millisecond}, granted: 1, refused: 2}
	done.fail("NOSEM no such semaphore")
	r.take(done)
	r.count(true)
	r.take(done)
	r.take(done)
	r.count(false)
	r.take(done)

	f := r.figures(time.Second)

	if f.Granted != 2 || f.Refused != 4 || f.Errors["NOSEM"] != 2 || f.PerSecond != 2 || f.Acquire.Count != 2 {
		t.Errorf("got %+v, want two rounds", f)
	}
	if f.Acquire.P50 < 999*time.Microsecond || f.Acquire.P50 > 1001*time.Microsecond {
		t.Errorf("p50: got %v, want 1ms", f.Acquire.P50)
	}
}

func TestReportAddsUpTheAddresses(t *testing.T) {
	a, b := newRecord("a:1"), newRecord("b:1")
	for i, r := range []*record{a, b} {
		r.count(true)
		r.take(&round{acquire: []time.Duration{time.Duration(i+1) * time.Second}, granted: 1, errors: []string{"NOSEM"}})
	}

	rep := report([]*record{a, b}, 2*time.Second)

	if rep.Total.Granted != 2 || rep.Total.PerSecond != 1 || rep.Total.Errors["NOSEM"] != 2 {
		t.Errorf("got %+v, want the sum", rep.Total)
	}
	if len(rep.Addrs) != 2 || rep.Total.Acquire.Worst < 2*time.Second {
		t.Errorf("got %+v, want both addresses, and the worst latency of both", rep)
	}
	if one := report([]*record{a}, time.Second); one.Addrs != nil {
		t.Errorf("one address: got it by itself as well: %+v", one.Addrs)
	}
}

func TestGapIsTheLongestTimeWithoutAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGap()
		time.Sleep(time.Hour) // before it counts
		g.begin()
		for _, d := range []time.Duration{time.Second, 3 * time.Second, 2 * time.Second} {
			time.Sleep(d)
			g.end()
		}
		if got := g.value(); got != 3*time.Second {
			t.Errorf("got %v, want 3s", got)
		}
	})
}

func TestCrowdRemembersItsLargest(t *testing.T) {
	var c crowd
	for range 3 {
		c.enter()
	}
	c.leave()
	c.enter()
	c.leave()
	if got := c.most.Load(); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}

// A server that grants more than there is must be found out.
func TestServerThatGrantsTooMuchIsFoundOut(t *testing.T) {
	addr := generous(t)
	cfg := Config{
		Servers: remote.Config{Addrs: []string{addr}}, Clients: 4, Pipeline: 1, Semaphores: 1,
		Capacity: 1, Hold: 5 * time.Millisecond, For: time.Hour, Requests: 40,
	}

	rep, err := Run(t.Context(), cfg)

	if err != nil || rep.Most <= rep.Capacity {
		t.Errorf("got %d at once of %d, %v, want more than there are", rep.Most, rep.Capacity, err)
	}
}

// generous is a server that says yes to everything.
func generous(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					var n, size int
					if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
						return
					}
					for range n {
						_, _ = fmt.Fscanf(in, "$%d\r\n", &size)
						_, _ = in.Discard(size + 2)
					}
					_, _ = c.Write([]byte(":1\r\n"))
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-served })
	return l.Addr().String()
}

func TestNoServerIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	cfg := Config{
		Servers: remote.Config{Addrs: []string{l.Addr().String()}}, Clients: 2, Pipeline: 1, Semaphores: 1, For: time.Hour,
	}
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want connection refused", err)
	}
}
