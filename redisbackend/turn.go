package redisbackend

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
)

//go:embed turn.lua
var turnLua string

// turn is something that one server at a time does.
type turn struct {
	link *link.Link
	key  string
	me   string
	term time.Duration // for how long it is taken
	kept time.Time     // when it was taken, or kept, the last time
}

// take takes the turn, or keeps it. It reports whether this server has it.
func (t *turn) take(ctx context.Context) (bool, error) {
	began := time.Now()
	reply, err := t.run(ctx, t.term)
	if err != nil || reply != 1 {
		return false, err
	}
	t.kept = began
	return true, nil
}

// keep takes the turn again when a part of its term is over.
func (t *turn) keep(ctx context.Context) (bool, error) {
	if time.Since(t.kept) < t.term/3 {
		return true, nil
	}
	return t.take(ctx)
}

// giveUp lets another server have the turn at once.
func (t *turn) giveUp(ctx context.Context) error {
	if t.kept.IsZero() {
		return nil
	}
	t.kept = time.Time{}
	_, err := t.run(ctx, 0)
	return err
}

func (t *turn) run(ctx context.Context, term time.Duration) (int64, error) {
	s, err := t.link.Session(ctx, t.key)
	if err != nil {
		return 0, fmt.Errorf("take a turn: %w", err)
	}
	defer s.Close()
	reply, err := s.Do(ctx, "EVAL", turnLua, 1, t.key, t.me, strconv.FormatInt(term.Milliseconds(), 10))
	if err != nil {
		return 0, fmt.Errorf("take a turn: %w", err)
	}
	n, _ := reply.(int64)
	return n, nil
}

var errTurn = errors.New("another server has it")

// firstOf returns the first of these that is not nil.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
