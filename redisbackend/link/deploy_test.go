package link

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/redisd"
)

func sentinelURL(s *redisd.Sentinels) string {
	return "redis-sentinel://" + strings.Join(s.Addrs(), ",") + "/" + redisd.Master
}

func TestSentinelsNameTheMasterAlsoAfterAFailover(t *testing.T) {
	s := redisd.RunSentinels(t)
	l := open(t, options(t, sentinelURL(s)))
	must(t, l.Ready())
	o := start(t, l, 10, "a")

	old, err := s.Leader()
	must(t, err)
	old.Kill()
	must(t, s.Moved(old))
	moved := time.Now()
	o.progress()
	t.Logf("calls were done %v after the failover", time.Since(moved).Round(time.Millisecond))
	must(t, old.Start())

	now, err := s.Leader()
	must(t, err)
	o.isTrue(lossy, always(now))
	o.only("CLUSTERDOWN", "unknown")
}

func TestAMasterThatWasReplacedButLivesIsLeft(t *testing.T) {
	s := redisd.RunSentinels(t)
	l := open(t, options(t, sentinelURL(s)))
	old, err := s.Leader()
	must(t, err)
	// A paused master is replaced, and goes on later as if nothing had been.
	must(t, old.Pause())
	must(t, s.Moved(old))
	until(t, "the new master is used", func() bool { return l.Ready() == nil && call(t, l, increment("n")).err == nil })
	must(t, old.Resume())
	now, err := s.Leader()
	must(t, err)

	for range 20 {
		must(t, call(t, l, increment("n")).err)
	}

	got, err := now.Do("GET", "n")
	must(t, err)
	if fmt.Sprint(got) != "21" {
		t.Errorf("at the new master: got %v, want 21", got)
	}
}

func clusterURL(c *redisd.Cluster) string {
	return "redis-cluster://" + strings.Join(c.Addrs()[:2], ",")
}

// keys are some that every master has one of.
func keys() []string { return []string{"{a}n", "{b}n", "{c}n", "{d}n", "{e}n", "{f}n"} }

// owner says who has a key.
func owner(t *testing.T, c *redisd.Cluster) func(string) *redisd.Server {
	return func(key string) *redisd.Server {
		s, err := c.Owner(key)
		must(t, err)
		return s
	}
}

func TestAClusterIsReshardedUnderLoad(t *testing.T) {
	c := redisd.RunCluster(t)
	l := open(t, options(t, clusterURL(c)))
	must(t, l.Ready())
	o := start(t, l, 5, keys()...)
	for _, key := range keys()[:3] {
		slot, err := c.Slot(key)
		must(t, err)
		from := owner(t, c)(key)
		i := slices.Index(c.Servers, from)
		to := c.Servers[(i+1)%3]
		_, err = c.OpenSlot(slot, to)
		must(t, err)
		o.progress() // what is at its old place is found there
		must(t, redisd.MoveKey(from, to, key))
		o.progress() // and what is at its new place, there
		must(t, c.CloseSlot(slot, to))
		o.progress()
	}
	o.isTrue(lossless, owner(t, c))
	o.only("CLUSTERDOWN")
	if o.codes["CLUSTERDOWN"] > 0 {
		t.Errorf("got %d answers CLUSTERDOWN, want redirections to be followed", o.codes["CLUSTERDOWN"])
	}
}

func TestAClusterFailsOverUnderLoad(t *testing.T) {
	c := redisd.RunCluster(t)
	l := open(t, options(t, clusterURL(c)))
	o := start(t, l, 5, keys()...)
	key := keys()[0]

	replica, err := c.Replica(owner(t, c)(key))
	must(t, err)
	must(t, c.Promote(replica)) // with all that is acknowledged
	o.progress()
	if r := call(t, l, increment("{a}other")); r.err != nil {
		t.Errorf("after a planned failover: got %v, want it done", r.err)
	}
	old := owner(t, c)(key)
	old.Kill()
	must(t, c.Moved(key, old))
	moved := time.Now()
	until(t, "every slot is served again", func() bool { return l.Ready() == nil })
	o.progress()
	t.Logf("calls were done %v after the failover", time.Since(moved).Round(time.Millisecond))

	o.isTrue(lossy, owner(t, c))
	o.only("CLUSTERDOWN", "unknown")
}

func TestClustersAndOthersAreNotTakenForEachOther(t *testing.T) {
	c := redisd.RunCluster(t)
	s := redisd.RunSentinels(t)
	for url, want := range map[string]string{
		"redis://" + c.Addrs()[0]:                                    "use redis-cluster://",
		"redis-cluster://" + s.Servers[0].Addr:                       "use redis:// or redis-sentinel://",
		"redis://" + s.Addrs()[0]:                                    "use redis-sentinel://",
		"redis-sentinel://" + strings.Join(s.Addrs(), ",") + "/nono": "knows no master called",
	} {
		o := options(t, url)
		l, err := Open(t.Context(), o)
		if err == nil {
			err = l.Ready()
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}

// heard keeps what was heard on channels.
type heard struct {
	mu  sync.Mutex
	all []Message
}

func (h *heard) hear(m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, m)
}

func (h *heard) count(want Message) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, m := range h.all {
		if m == want {
			n++
		}
	}
	return n
}

func TestASubscriptionIsMadeAnewAndTellsOfTheGap(t *testing.T) {
	s := redisd.Run(t)
	var h heard
	o := options(t, "redis://"+s.Addr)
	o.Hear = h.hear
	l := open(t, o)
	l.Subscribe("c")
	l.Subscribe("d")
	l.Subscribe("c")
	until(t, "it is heard", func() bool {
		return h.count(Message{Channel: "c", Gap: true}) == 1 && h.count(Message{Channel: "d", Gap: true}) == 1
	})
	publish := func(channel, text string) {
		_, err := s.Do("PUBLISH", channel, text)
		must(t, err)
	}
	publish("c", "1")
	until(t, "a message", func() bool { return h.count(Message{Channel: "c", Payload: "1"}) == 1 })

	must(t, s.Restart())
	until(t, "the gap", func() bool {
		return h.count(Message{Channel: "c", Gap: true}) == 2 && h.count(Message{Channel: "d", Gap: true}) == 2
	})
	publish("c", "2")
	until(t, "a message", func() bool { return h.count(Message{Channel: "c", Payload: "2"}) == 1 })

	l.Unsubscribe("c")
	until(t, "nobody hears it", func() bool { n, err := s.Do("PUBLISH", "c", "3"); return err == nil && n == int64(0) })
	publish("d", "4")
	until(t, "the other channel is heard", func() bool { return h.count(Message{Channel: "d", Payload: "4"}) == 1 })
}

func TestASilentConnectionOfASubscriptionIsGivenUp(t *testing.T) {
	s, p, _ := through(t)
	var h heard
	o := options(t, "redis://"+p.Addr)
	o.Hear = h.hear
	l := open(t, o)
	l.Subscribe("c")
	until(t, "it is heard", func() bool { return h.count(Message{Channel: "c", Gap: true}) == 1 })

	p.Silence()
	until(t, "the loss is noticed", func() bool { return l.Ready() != nil })
	<-time.After(2*silence + silence/2)
	p.Restore()

	until(t, "it is heard again", func() bool { return h.count(Message{Channel: "c", Gap: true}) >= 2 })
	until(t, "a message", func() bool {
		_, err := s.Do("PUBLISH", "c", "1")
		return err == nil && h.count(Message{Channel: "c", Payload: "1"}) > 0
	})
}

func TestShardedChannelsFollowTheirSlots(t *testing.T) {
	c := redisd.RunCluster(t)
	var h heard
	o := options(t, clusterURL(c))
	o.Hear = h.hear
	l := open(t, o)
	channels := keys()
	for _, ch := range channels {
		l.Subscribe(ch)
	}
	hears := func(ch string) {
		t.Helper()
		text := fmt.Sprint(time.Now().UnixNano())
		until(t, "a message on "+ch, func() bool {
			_, err := owner(t, c)(ch).Do("SPUBLISH", ch, text)
			return err == nil && h.count(Message{Channel: ch, Payload: text}) > 0
		})
	}
	for _, ch := range channels {
		hears(ch)
	}
	ch := channels[0]
	gaps := h.count(Message{Channel: ch, Gap: true})

	slot, err := c.Slot(ch)
	must(t, err)
	from := owner(t, c)(ch)
	to := c.Servers[(slices.Index(c.Servers, from)+1)%3]
	must(t, c.Reshard(slot, to))

	hears(ch)
	if got := h.count(Message{Channel: ch, Gap: true}); got <= gaps {
		t.Errorf("gaps after the slot has moved: got %d, want more than %d", got, gaps)
	}
	to.Kill()
	must(t, c.Moved(ch, to))
	for _, ch := range channels {
		hears(ch)
	}
}
