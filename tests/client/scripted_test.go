package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/client"
	"github.com/semserver/semserver/internal/trial"
)

// scripted is a server that answers as a test tells it to, for what real ones seldom say.
type scripted struct {
	*trial.Server

	mu      sync.Mutex
	replies map[string][]string // by command, used up one by one; the last one stays
}

// play serves these replies for the length of the test.
func play(t *testing.T, replies map[string][]string) *scripted {
	t.Helper()
	s := &scripted{replies: replies}
	s.Server = trial.Serve(t, s.reply)
	return s
}

// inLine is how long playAfterALine lets an ACQUIRE stand. The client takes an answer for one to a request
// that waited by the real time that it took, so real time has to pass.
const inLine = 20 * time.Millisecond

// playAfterALine is play where an ACQUIRE is answered as if it had stood in line.
func playAfterALine(t *testing.T, replies map[string][]string) *scripted {
	t.Helper()
	s := &scripted{replies: replies}
	s.Server = trial.Serve(t, func(words []string) string {
		if strings.EqualFold(words[0], "SEM.ACQUIRE") {
			time.Sleep(inLine)
		}
		return s.reply(words)
	})
	return s
}

// reply says what the script has for a command.
func (s *scripted) reply(words []string) string {
	name := strings.ToUpper(words[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.replies[name]
	if len(left) == 0 {
		return "-ERR not in the script: " + name + "\r\n"
	}
	if len(left) > 1 {
		s.replies[name] = left[1:]
	}
	return left[0]
}

// log is what was asked, with the holder and what is left of a wait written as words.
func (s *scripted) log() []string {
	var lines []string
	for _, line := range s.Asked() {
		words := strings.Fields(line)
		for i, w := range words {
			if len(w) == 26 {
				words[i] = "ID"
			}
			if i > 0 && words[i-1] == "WAIT" {
				words[i] = "LEFT"
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// granted is a grant of a minute.
func granted(token int, replayed int) string {
	return fmt.Sprintf("*5\r\n$1\r\nh\r\n:%d\r\n:0\r\n:60000\r\n:%d\r\n", token, replayed)
}

const (
	one       = ":1\r\n"
	zero      = ":0\r\n"
	minute    = ":60000\r\n"
	none      = "*-1\r\n"
	down      = "-CLUSTERDOWN no leader can be reached\r\n"
	uncertain = "-UNCERTAIN holder h the outcome is not known\r\n"
	silence   = ""
	stopping  = "-SHUTDOWN the server is stopping\r\n"
)

func TestAnswersThatSettleNothingAreFollowedByTheSameRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acquire []string
		want    []string
	}{
		"down":      {[]string{down, down, granted(7, 0)}, []string{"SEM.ACQUIRE loader HOLDER ID", "SEM.ACQUIRE loader HOLDER ID", "SEM.ACQUIRE loader HOLDER ID"}},
		"uncertain": {[]string{uncertain, granted(7, 1)}, []string{"SEM.ACQUIRE loader HOLDER ID", "SEM.ACQUIRE loader HOLDER ID", "SEM.RENEW loader ID TOKEN 7"}},
		"crowded":   {[]string{"-ERR max number of clients reached\r\n", granted(7, 0)}, []string{"SEM.ACQUIRE loader HOLDER ID", "SEM.ACQUIRE loader HOLDER ID"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{T: t}
			s := play(t, map[string][]string{"SEM.ACQUIRE": c.acquire, "SEM.RENEW": {minute}, "SEM.RELEASE": {down, one}})
			p := b.acquire(b.client(s.Addr()), "loader")
			if got := s.log(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if asked := s.Asked(); asked[0] != asked[1] {
				t.Errorf("got %q, want the same request", asked)
			}
			if p.Token() != 7 || p.Err() != nil {
				t.Errorf("got token %d and %v, want the grant", p.Token(), p.Err())
			}
			b.release(p)
		})
	}
}

// It lives, and takes requests; but another one may have a leader, and keeps our place for a while only.
func TestWaitAtAServerThatCannotDecideMovesToTheNext(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	cutOff := play(t, map[string][]string{"SEM.ACQUIRE": {silence}})
	cutOff.SayInfo("$19\r\nsemserver_ready:0\r\n\r\n")
	second := play(t, map[string][]string{"SEM.ACQUIRE": {granted(7, 0)}, "SEM.RENEW": {minute}, "SEM.RELEASE": {one}})

	p := b.acquire(b.client(cutOff.Addr(), second.Addr()), "loader", client.Wait(time.Hour))

	if holder := strings.Fields(cutOff.Asked()[0])[3]; p.Holder() != holder {
		t.Errorf("got holder %s, want %s as before", p.Holder(), holder)
	}
	b.release(p)
}

func TestServerThatStopsHandsItsWaiterToTheNext(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	first := play(t, map[string][]string{"SEM.ACQUIRE": {stopping}})
	second := play(t, map[string][]string{"SEM.ACQUIRE": {granted(7, 1)}, "SEM.RENEW": {minute}, "SEM.RELEASE": {one}})

	p := b.acquire(b.client(first.Addr(), second.Addr()), "loader", client.Wait(time.Minute))

	if got := second.log(); !slices.Equal(got, []string{"SEM.ACQUIRE loader HOLDER ID WAIT LEFT", "SEM.RENEW loader ID TOKEN 7"}) {
		t.Errorf("got %q, want the same request and a renewal", got)
	}
	if holder := strings.Fields(first.Asked()[0])[3]; p.Holder() != holder {
		t.Errorf("got holder %s, want %s as before", p.Holder(), holder)
	}
	b.release(p)
}

func TestGrantWhoseLeaseIsOverBeforeItIsReadIsNotHandedOut(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	s := play(t, map[string][]string{"SEM.ACQUIRE": {granted(7, 1), granted(8, 0)}, "SEM.RENEW": {zero, minute}, "SEM.RELEASE": {one}})
	p := b.acquire(b.client(s.Addr()), "loader", client.Wait(time.Minute))
	if p.Token() != 8 {
		t.Errorf("got token %d, want 8: that of the grant that is live", p.Token())
	}
	b.release(p)

	s = play(t, map[string][]string{"SEM.ACQUIRE": {granted(7, 1)}, "SEM.RENEW": {zero}})
	_, err := b.client(s.Addr()).Acquire(t.Context(), "loader")
	var lost *client.LostError
	if !errors.As(err, &lost) || lost.Token != 7 {
		t.Errorf("without a wait: got %v, want the loss", err)
	}
}

func TestWhatMayHaveBeenAppliedIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []client.Option
		want    []string
	}{
		"made":  {nil, []string{"SEM.ACQUIRE loader HOLDER ID", "SEM.CANCEL loader ID", "SEM.RELEASE loader ID"}},
		"named": {[]client.Option{client.Holder("pod")}, []string{"SEM.ACQUIRE loader HOLDER pod", "SEM.CANCEL loader pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{T: t}
			s := play(t, map[string][]string{"SEM.ACQUIRE": {uncertain}, "SEM.CANCEL": {zero}, "SEM.RELEASE": {zero}})
			x := b.configured(client.Config{Addrs: []string{s.Addr()}, Patience: -1})
			if _, err := x.Acquire(t.Context(), "loader", c.options...); !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("got %v, want %v", err, client.ErrUnavailable)
			}
			if got := s.log(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestGrantThatCannotBeRenewedIsGivenBack(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	s := playAfterALine(t, map[string][]string{"SEM.ACQUIRE": {granted(7, 0)}, "SEM.RENEW": {"-ERR out of order\r\n"}, "SEM.CANCEL": {zero}, "SEM.RELEASE": {one}})

	_, err := b.client(s.Addr()).Acquire(t.Context(), "loader", client.Holder("pod"), client.Wait(time.Minute))

	var refused *client.Error
	if !errors.As(err, &refused) || refused.Message != "out of order" {
		t.Errorf("got %v, want the refusal", err)
	}
	want := []string{"SEM.ACQUIRE loader HOLDER pod WAIT LEFT", "SEM.RENEW loader pod TOKEN 7", "SEM.CANCEL loader pod", "SEM.RELEASE loader pod TOKEN 7"}
	if got := s.log(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNullIsNoPermitAndNonsenseIsAnError(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	for reply, want := range map[string]error{
		none: client.ErrNoPermit, "$-1\r\n": client.ErrNoPermit, "+OK\r\n": nil, "*0\r\n": nil, "$0\r\n\r\n": nil, ":1\r\n": nil,
	} {
		s := play(t, map[string][]string{"SEM.ACQUIRE": {reply}})
		p, err := b.client(s.Addr()).Acquire(t.Context(), "loader", client.WhenUnavailable(client.FailOpen))
		if p != nil || err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: got %v and %v, want no permit and an error", reply, p, err)
		}
	}
}
