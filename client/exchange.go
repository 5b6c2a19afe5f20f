package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/semaphore"
)

// answerTimeout is how long a command that does not wait in line may take. A server holds a request
// for 5 s (its default) while a leader is elected.
const answerTimeout = 6 * time.Second

// exchange sends one command to one server and returns its answer: nil, an integer, a string, or a
// list of such. The error is an *Error that the server refused it with, or *unanswered. It returns when
// ctx ends; the command itself goes on for as long as within.
func (c *Client) exchange(ctx context.Context, rdb *redis.Client, within time.Duration, args ...any) (any, error) {
	answered, err := c.begin(ctx, rdb, within, args...)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return nil, &unanswered{err: context.Cause(ctx), sent: true}
	case <-c.ctx.Done():
		return nil, &unanswered{err: ErrClosed, sent: true}
	}
}

// answer is what came of one command: as exchange returns it.
type answer struct {
	value any
	err   error
}

// begin sends one command. The channel receives the answer to it, when within has passed at the latest.
func (c *Client) begin(ctx context.Context, rdb *redis.Client, within time.Duration, args ...any) (<-chan answer, error) {
	if ctx.Err() != nil {
		return nil, &unanswered{err: context.Cause(ctx)}
	}
	answered := make(chan answer, 1)
	begun := c.tasks.Go(func() {
		// ctx cannot interrupt a command in flight, and must not make it end before its time.
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		value, err := rdb.Do(bound, args...).Result()
		answered <- answer{value, verdict(err)}
	})
	if !begun {
		return nil, ErrClosed
	}
	return answered, nil
}

// verdict says what an error of a command means.
func verdict(err error) error {
	var said redis.Error
	var network *net.OpError
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return nil
	case errors.As(err, &said):
		return refusal(said.Error())
	case errors.Is(err, redis.ErrClosed):
		return &unanswered{err: ErrClosed, sent: true}
	case errors.As(err, &network) && network.Op == "dial", errors.Is(err, redis.ErrPoolTimeout):
		return &unanswered{err: err}
	default:
		return &unanswered{err: err, sent: true}
	}
}

// refusal reads the words that a server answered with.
func refusal(words string) error {
	code, message, _ := strings.Cut(words, " ")
	e := &Error{Code: semaphore.Code(code), Message: message}
	switch {
	case e.Code == semaphore.CodeDown, strings.HasPrefix(words, "ERR max number of clients"):
		return &unanswered{err: e}
	case e.Code == semaphore.CodeUncertain, e.Code == semaphore.CodeShutdown:
		return &unanswered{err: e, sent: true} // after SHUTDOWN the place in line may be kept
	default:
		return e
	}
}
