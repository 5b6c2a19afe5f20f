package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable says that no server could be asked: nothing has happened.
var ErrUnavailable = errors.New("no server answers")

// ErrUnknown says that a request was sent and its answer was lost: it may have been done.
var ErrUnknown = errors.New("the answer was lost, and what became of the request is not known")

// errClosed says that nothing is asked any more.
var errClosed = errors.New("closed")

// Refusal is an error reply.
type Refusal struct {
	Code string // its first word
	Text string // all of it
}

func (r *Refusal) Error() string { return r.Text }

// unsent marks what went wrong before anything was sent.
type unsent struct{ err error }

func (e *unsent) Error() string { return e.err.Error() }
func (e *unsent) Unwrap() error { return e.err }

// verdict is what may be concluded from an attempt.
type verdict int

const (
	answered verdict = iota
	undone           // certainly nothing was done; another server may do it
	unknown          // it may have been done
)

// judge reads the error of an attempt.
func judge(err error) verdict {
	var refusal *Refusal
	var never *unsent
	switch {
	case err == nil, errors.Is(err, errClosed):
		return answered
	case errors.As(err, &never):
		return undone
	case !errors.As(err, &refusal):
		return unknown
	}
	switch refusal.Code {
	case "CLUSTERDOWN", "SHUTDOWN", "LOADING", "MAXCLIENTS":
		return undone
	case "UNCERTAIN":
		return unknown
	}
	if strings.Contains(refusal.Text, "max number of clients") {
		return undone
	}
	return answered
}

// answerTime is how long an answer may take, beyond what the command asks for: a server promises one
// within a second after WAIT, and within its --hold (5 s) where there is none.
const answerTime = 7 * time.Second

// pause is the time between two rounds through all servers.
const pause = 100 * time.Millisecond

// try calls ask with one server after the other until one has answered, or the patience is used up.
// doubtful says that an answer was lost on the way. A wait goes on, to its own end, as long as the
// silence between two servers that were reached is no longer than the patience.
func (s *Servers) try(ctx context.Context, c Command, ask asker) (doubtful bool, err error) {
	reached := time.Now() // a server, or the beginning
	end := reached.Add(s.cfg.Patience + c.Blocks)
	limit := c.Blocks + answerTime
	if !c.Once {
		limit = c.Blocks + s.answerTime()
	}
	for attempt := 1; ; attempt++ {
		i := s.current.Load()
		err := s.attempt(ctx, int(i), limit, end, func(ctx context.Context, asked *client) error {
			if !c.Local {
				if err := s.ready(ctx, asked); err != nil {
					return err
				}
			}
			return ask(ctx, asked)
		})
		switch judge(err) {
		case answered:
			return doubtful, err
		case unknown:
			doubtful = !c.Reads
		}
		if c.Blocks > 0 && wasReached(err) {
			reached = time.Now()
		}
		giveUp := earlier(end, reached.Add(s.cfg.Patience))
		s.current.CompareAndSwap(i, (i+1)%int64(len(s.clients)))
		goOn := (!doubtful || !c.Once) && s.rest(ctx, attempt, giveUp)
		switch {
		case ctx.Err() != nil:
			return doubtful, ctx.Err()
		case !goOn:
			return doubtful, s.failure(err, doubtful)
		}
	}
}

// answerTime is how long one of several servers may take, so that there is time for the others.
func (s *Servers) answerTime() time.Duration {
	return min(answerTime, s.cfg.Patience/time.Duration(len(s.clients)))
}

// wasReached says whether a server took a request that it then did not come to answer.
func wasReached(err error) bool {
	var refusal *Refusal
	return judge(err) == unknown || errors.As(err, &refusal) && refusal.Code == "SHUTDOWN"
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

type asker func(ctx context.Context, asked *client) error

// attempt asks one server. It returns when the context ends, though go-redis goes on to wait for what
// was sent; Close ends that.
func (s *Servers) attempt(ctx context.Context, i int, limit time.Duration, end time.Time, ask asker) error {
	bounded, cancel := context.WithDeadline(ctx, earlier(end, time.Now().Add(limit)))
	result := make(chan error, 1)
	started := s.start(func() {
		defer cancel()
		result <- ask(bounded, s.clients[i])
	})
	if !started {
		cancel()
		return errClosed
	}
	select {
	case err := <-result:
		if judge(err) == answered {
			return err
		}
		err = fmt.Errorf("%s: %w", s.cfg.Addrs[i], err)
		if !s.clients[i].connected.Load() {
			return &unsent{err}
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest waits before another attempt, once every server has been asked. It reports false when there is
// no time for one.
func (s *Servers) rest(ctx context.Context, attempt int, giveUp time.Time) bool {
	if attempt%len(s.clients) != 0 {
		return time.Now().Before(giveUp)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return time.Now().Before(giveUp)
	}
}

// failure words the error of the last attempt.
func (s *Servers) failure(last error, doubtful bool) error {
	if doubtful {
		return fmt.Errorf("%w: %w", ErrUnknown, last)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, last)
}

// refusal separates what the server said from what went wrong on the way.
func refusal(value any, err error) (any, error) {
	var said redis.Error
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, redis.Nil):
		return nil, nil
	case errors.As(err, &said):
		text := said.Error()
		code, _, _ := strings.Cut(text, " ")
		return nil, &Refusal{Code: code, Text: text}
	}
	return nil, err
}
