package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchEvery is how often each Sentinel is asked who the master is.
const watchEvery = 250 * time.Millisecond

// watched is a fleet of one server, which Sentinels name. Each of them is asked again and again, and the
// word of most counts; a master that others have replaced is left also where it goes on answering.
type watched struct {
	single
	link *Link

	mu       sync.Mutex
	opinions []opinion     // one for each Sentinel
	news     chan struct{} // closed when one changes
}

// opinion is what a Sentinel says.
type opinion struct {
	asked bool
	addr  string
	err   error
}

func openWatched(l *Link) *watched {
	w := &watched{link: l, opinions: make([]opinion, len(l.options.Target.Addrs)), news: make(chan struct{})}
	w.only = l.newNode(w.where, func() {})
	return w
}

func (w *watched) start() {
	for i, addr := range w.link.options.Target.Addrs {
		w.link.work.Go(func() { w.watch(i, addr) })
	}
}

// watch asks one Sentinel until the Link is closed.
func (w *watched) watch(i int, addr string) {
	_, login := w.link.options.credentials()
	s := sentinel{addr: addr, dialer: dialer{options: w.link.options, login: login}}
	defer s.leave()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		master, err := s.ask(w.link.ctx, w.link.options.Target.Master)
		w.note(i, opinion{true, master, err})
		select {
		case <-w.link.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// note takes in an opinion and leaves a master that most think replaced.
func (w *watched) note(i int, o opinion) {
	w.mu.Lock()
	w.opinions[i] = o
	close(w.news)
	w.news = make(chan struct{})
	addr, most := w.electLocked()
	w.mu.Unlock()
	if most {
		w.only.leave(addr)
	}
}

// electLocked is the address that is named most often, and whether by more than half of the Sentinels.
func (w *watched) electLocked() (addr string, most bool) {
	votes := map[string]int{}
	for _, o := range w.opinions {
		if o.addr == "" {
			continue
		}
		if votes[o.addr]++; votes[o.addr] > votes[addr] {
			addr = o.addr
		}
	}
	return addr, votes[addr] > len(w.opinions)/2
}

// where is the address of the master. It waits for Sentinels that have not answered yet, as long as it
// depends on them.
func (w *watched) where(ctx context.Context) (string, error) {
	for {
		w.mu.Lock()
		addr, most := w.electLocked()
		opinions, news := append([]opinion(nil), w.opinions...), w.news
		w.mu.Unlock()
		pending := false
		var errs []error
		for _, o := range opinions {
			pending = pending || !o.asked
			errs = append(errs, o.err)
		}
		switch {
		case most || addr != "" && !pending:
			return addr, nil
		case !pending:
			return "", fmt.Errorf("ask Sentinels for the master: %w", errors.Join(errs...))
		}
		select {
		case <-news:
		case <-ctx.Done():
			if addr != "" {
				return addr, nil
			}
			return "", fmt.Errorf("ask Sentinels for the master: %w", ctx.Err())
		}
	}
}

// sentinel is the connection to a Sentinel.
type sentinel struct {
	addr   string
	dialer dialer
	wire   *wire // nil: none
}

// ask is the address of the master, as this Sentinel sees it.
func (s *sentinel) ask(ctx context.Context, master string) (string, error) {
	if s.wire == nil {
		w, err := s.dialer.dial(ctx, s.addr)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.addr, err)
		}
		s.wire = w
	}
	parts, err := s.wire.Do(ctx, "sentinel", "get-master-addr-by-name", master).StringSlice()
	if err == nil && len(parts) == 2 {
		return net.JoinHostPort(parts[0], parts[1]), nil
	}
	s.leave()
	if err == nil || errors.Is(err, redis.Nil) {
		err = fmt.Errorf("it knows no master called %.100q", master)
	}
	return "", fmt.Errorf("%s: %w", s.addr, err)
}

func (s *sentinel) leave() {
	if s.wire != nil {
		s.wire.close()
		s.wire = nil
	}
}
