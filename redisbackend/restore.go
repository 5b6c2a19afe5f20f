package redisbackend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

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

// restore puts back the permits that a semaphore's books lack, if nobody touches its List and ZSET for
// the grace. Whoever takes a permit by hand and says so a moment later is not mistaken for one who has
// died in between.
func (p *pass) restore(ctx context.Context, name string) error {
	layout := p.remote.library.Layout()
	s, err := p.remote.link.Session(ctx, layout.Permits(name))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer s.Close()
	if _, err := s.Do(ctx, "WATCH", layout.Permits(name), layout.Holders(name)); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	r := semaphore.Reconcile{Key: name}
	call := p.remote.library.Reconcile(p.core.office.stamp(name), r, p.core.office.ticket(), p.remote.limits.MaxSemaphores)
	reply, err := transaction(ctx, s, call)
	if err != nil || reply == nil {
		return err // nil: somebody has touched them
	}
	a, err := script.ReadAnswer(r, reply)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if n, ok := a.Value.(semaphore.Number); ok && n > 0 {
		p.metrics.reconciled.Add(float64(n))
		p.log.Info("permits that were lost are back in circulation", "semaphore", name, "permits", int64(n))
		p.core.wake(name)
	}
	return nil
}

// transaction makes a call in a transaction. A reply of nil: what is watched was touched.
func transaction(ctx context.Context, s *link.Session, c script.Call) (any, error) {
	evalsha := []any{"EVALSHA", c.Script.SHA, len(c.Keys)}
	for _, k := range c.Keys {
		evalsha = append(evalsha, k)
	}
	for _, a := range c.Args {
		evalsha = append(evalsha, a)
	}
	for _, command := range [][]any{{"MULTI"}, evalsha} {
		if _, err := s.Do(ctx, command...); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
	}
	reply, err := s.Do(ctx, "EXEC")
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	replies, _ := reply.([]any)
	if len(replies) != 1 {
		return nil, nil
	}
	if failed, ok := replies[0].(error); ok {
		return nil, fmt.Errorf("commit: %w", failed)
	}
	return replies[0], nil
}
