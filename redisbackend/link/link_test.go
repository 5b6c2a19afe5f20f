package link

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

// patience is how long to wait for what must come.
const patience = 30 * time.Second

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	goleak.VerifyTestMain(m)
}

var (
	// add counts in KEYS[1] and returns the count.
	add = newScript("add", "#!lua flags=allow-cross-slot-keys\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])")
	// echo returns its arguments.
	echo = newScript("echo", "#!lua flags=no-writes\nreturn {ARGV[1], ARGV[2], false, #KEYS}")
	// spin keeps Redis busy until it is killed, and writes nothing.
	spin = newScript("spin", "#!lua flags=no-writes\nwhile true do end")
	// broken writes and then fails.
	broken = newScript("broken", "#!lua\nredis.call('SET', KEYS[1], 1)\nreturn redis.call('NONSENSE')")
	// push fails for want of a List.
	push = newScript("push", "#!lua\nreturn redis.call('RPUSH', KEYS[1], 1)")
)

func newScript(name, source string) *script.Script {
	sum := sha1.Sum([]byte(source))
	return &script.Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

func scripts() []*script.Script { return []*script.Script{add, echo, spin, broken, push} }

// options are those of tests, for a URL.
func options(t testing.TB, url string) Options {
	t.Helper()
	target, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions(target)
	o.Scripts = scripts()
	return o
}

// open opens a Link for the length of the test.
func open(t testing.TB, o Options) *Link {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func single1(t testing.TB, settings ...string) (*redisd.Server, *Link) {
	t.Helper()
	s := redisd.Run(t, settings...)
	return s, open(t, options(t, "redis://"+s.Addr))
}

// result is how a call ended.
type result struct {
	reply any
	err   error
}

// send sends a call; its end comes on the channel.
func send(l *Link, c script.Call) <-chan result {
	ended := make(chan result, 2)
	l.Send(c, func(reply any, err error) { ended <- result{reply, err} })
	return ended
}

func wait(t testing.TB, ended <-chan result) result {
	t.Helper()
	select {
	case r := <-ended:
		return r
	case <-time.After(patience):
		t.Fatal("got no answer")
		return result{}
	}
}

func call(t testing.TB, l *Link, c script.Call) result {
	t.Helper()
	return wait(t, send(l, c))
}

// on is a call of a script.
func on(s *script.Script, keys []string, args ...string) script.Call {
	return script.Call{Script: s, Keys: keys, Args: args}
}

func increment(key string) script.Call { return on(add, []string{key}, "1") }

// code is the code of an error, "unknown" for ErrUnknown.
func code(err error) string {
	var refusal *semaphore.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refusal):
		return string(refusal.Code)
	case errors.Is(err, ErrUnknown):
		return "unknown"
	case errors.Is(err, ErrUnreplicated):
		return "unreplicated"
	}
	return err.Error()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if holds() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("%s: not within %v", what, patience)
}

func TestCallsAreAnsweredEachByItsOwnReply(t *testing.T) {
	_, l := single1(t)
	var all sync.WaitGroup
	const callers, each = 20, 50
	for i := range callers {
		all.Go(func() {
			for k := range each {
				want := fmt.Sprintf("%d-%d", i, k)
				r := call(t, l, on(echo, []string{"a", "b"}, want, "\x00\r\n"))
				if got := fmt.Sprintf("%q %v", r.reply, r.err); got != fmt.Sprintf("%q <nil>", []any{want, "\x00\r\n", nil, int64(2)}) {
					t.Errorf("got %s, want %s echoed", got, want)
				}
			}
		})
	}
	all.Wait()
	if batches := l.counters.batches.Load(); batches >= callers*each {
		t.Errorf("batches: got %d for %d calls, want fewer", batches, callers*each)
	}
}

func TestEveryCallIsExecutedOnce(t *testing.T) {
	s, l := single1(t)
	ends := make([]<-chan result, 2000)
	for i := range ends {
		ends[i] = send(l, increment("n"))
	}
	seen := map[any]bool{}
	for _, e := range ends {
		r := wait(t, e)
		if r.err != nil || seen[r.reply] {
			t.Fatalf("got %v, %v, want every number once", r.reply, r.err)
		}
		seen[r.reply] = true
	}
	if got, err := s.Do("GET", "n"); got != "2000" || err != nil {
		t.Errorf("got %v, %v, want 2000", got, err)
	}
}

func TestFlushedScriptsAreLoadedAgain(t *testing.T) {
	s, l := single1(t)
	for range 20 {
		if _, err := s.Do("SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
		var ends []<-chan result
		for range 50 {
			ends = append(ends, send(l, increment("n")))
		}
		for _, e := range ends {
			if r := wait(t, e); r.err != nil {
				t.Fatalf("got %v, want it executed", r.err)
			}
		}
	}
	if got, _ := s.Do("GET", "n"); got != "1000" {
		t.Errorf("got %v, want 1000", got)
	}
}

func TestCloseAnswersEverything(t *testing.T) {
	_, l := single1(t)
	var ends []<-chan result
	for range 3000 {
		ends = append(ends, send(l, increment("n")))
	}
	l.Close()
	for _, e := range ends {
		if r := wait(t, e); r.err != nil && code(r.err) != "CLUSTERDOWN" {
			t.Fatalf("got %v, want it done or certainly not", r.err)
		}
	}
	if r := call(t, l, increment("n")); code(r.err) != "CLUSTERDOWN" {
		t.Errorf("after Close: got %v, want CLUSTERDOWN", r.err)
	}
}
