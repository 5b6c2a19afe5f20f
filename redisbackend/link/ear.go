package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// silence is how long a subscribed connection may be silent before it is pinged, and then until it is
// given up.
const silence = 2 * time.Second

// ear hears the channels of one server.
type ear struct {
	ears   *ears
	node   *node
	cancel context.CancelFunc
	change chan struct{} // holds one element while wanted may have changed

	wanted map[string]bool // guarded by ears.mu
}

func newEar(e *ears, n *node) *ear {
	a := &ear{ears: e, node: n, change: make(chan struct{}, 1), wanted: map[string]bool{}}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(e.link.ctx)
	e.work.Go(func() { a.run(ctx) })
	return a
}

// dropLocked ends the hearing of a channel, and the ear when it was the last.
func (a *ear) dropLocked(channel string) {
	delete(a.wanted, channel)
	if len(a.wanted) == 0 && a.sharded() {
		delete(a.ears.open, a.node)
		a.cancel()
		return
	}
	a.nudge()
}

func (a *ear) nudge() {
	select {
	case a.change <- struct{}{}:
	default:
	}
}

// run hears until it is cancelled.
func (a *ear) run(ctx context.Context) {
	pause := retryFirst
	for ctx.Err() == nil {
		began := time.Now()
		err := a.hear(ctx)
		if time.Since(began) > retryMost {
			pause = retryFirst
		}
		if err != nil && ctx.Err() == nil {
			a.ears.link.fleet.look()
			a.node.log().Debug("subscription to Redis is broken", "error", oneLine(err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, retryMost)
	}
}

// hear makes a connection and hears until that breaks.
func (a *ear) hear(ctx context.Context) error {
	dial, cancel := context.WithTimeout(ctx, a.ears.link.options.Timeout)
	defer cancel()
	addr, err := a.node.where(dial)
	if err != nil {
		return err
	}
	w, err := a.ears.link.dialer.connect(dial, addr)
	if err != nil {
		return err
	}
	defer w.close()
	a.node.watch(w)
	defer a.node.forget(w)
	defer context.AfterFunc(ctx, func() { _ = w.net.Close() })()
	sub := w.Client.Subscribe(ctx)
	defer func() { _ = sub.Close() }() // its connection is closed as well

	var arranging sync.WaitGroup
	over := make(chan struct{})
	defer arranging.Wait()
	defer close(over)
	arranging.Go(func() {
		if a.arrange(ctx, sub, over) != nil {
			_ = w.net.Close()
		}
	})
	return a.receive(ctx, sub)
}

// arrange subscribes and unsubscribes as it is wanted, until it is over.
func (a *ear) arrange(ctx context.Context, sub *redis.PubSub, over <-chan struct{}) error {
	has := map[string]bool{}
	for {
		more, less := a.difference(has)
		for _, channel := range more {
			if err := a.subscribe(ctx, sub, channel); err != nil {
				return err
			}
			has[channel] = true
		}
		for _, channel := range less {
			if err := a.unsubscribe(ctx, sub, channel); err != nil {
				return err
			}
			delete(has, channel)
		}
		select {
		case <-a.change:
		case <-over:
			return nil
		}
	}
}

// difference is what must be subscribed to, and what no longer.
func (a *ear) difference(has map[string]bool) (more, less []string) {
	a.ears.mu.Lock()
	defer a.ears.mu.Unlock()
	for channel := range a.wanted {
		if !has[channel] {
			more = append(more, channel)
		}
	}
	for channel := range has {
		if !a.wanted[channel] {
			less = append(less, channel)
		}
	}
	return more, less
}

func (a *ear) sharded() bool { return a.ears.link.options.Target.Mode == Cluster }

func (a *ear) subscribe(ctx context.Context, sub *redis.PubSub, channel string) error {
	if a.sharded() {
		return sub.SSubscribe(ctx, channel)
	}
	return sub.Subscribe(ctx, channel)
}

func (a *ear) unsubscribe(ctx context.Context, sub *redis.PubSub, channel string) error {
	if a.sharded() {
		return sub.SUnsubscribe(ctx, channel)
	}
	return sub.Unsubscribe(ctx, channel)
}

// receive passes on what comes until the connection breaks, or is silent though it was pinged.
func (a *ear) receive(ctx context.Context, sub *redis.PubSub) error {
	pinged := false
	for {
		event, err := sub.ReceiveTimeout(ctx, silence)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && !pinged {
			pinged = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		pinged = false
		if err := a.pass(event); err != nil {
			return err
		}
	}
}

// pass tells the caller what has come.
func (a *ear) pass(event any) error {
	hear := a.ears.link.options.Hear
	switch e := event.(type) {
	case *redis.Message:
		hear(Message{Channel: e.Channel, Payload: e.Payload})
	case *redis.Subscription:
		switch {
		case strings.HasSuffix(e.Kind, "unsubscribe"):
			if a.wants(e.Channel) {
				return fmt.Errorf("the server no longer has the slot of channel %.100q", e.Channel)
			}
		default:
			hear(Message{Channel: e.Channel, Gap: true})
		}
	}
	return nil
}

func (a *ear) wants(channel string) bool {
	a.ears.mu.Lock()
	defer a.ears.mu.Unlock()
	return a.wanted[channel]
}
