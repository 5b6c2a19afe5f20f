package redisbackend

import (
	"errors"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// scan lists names. It changes nothing, so it is simply asked again while Redis is away.
func (e *Engine) scan(s semaphore.Scan) semaphore.Reply {
	for began := time.Now(); ; {
		page, err := e.remote.scan(s)
		var refusal *semaphore.Error
		switch {
		case err == nil:
			return semaphore.Reply{Value: page}
		case errors.As(err, &refusal) && !errors.Is(err, semaphore.ErrDown):
			return semaphore.Reply{Err: refusal}
		case time.Since(began) > e.cfg.Hold || e.ctx.Err() != nil:
			return semaphore.Reply{Err: errAway}
		}
		pause := time.NewTimer(restFor)
		select {
		case <-pause.C:
		case <-e.ctx.Done():
		}
		pause.Stop()
	}
}

// scan reads a page of names.
func (r *remote) scan(s semaphore.Scan) (*semaphore.KeyPage, error) {
	replies, err := r.together(r.library.Scan(s))
	if err != nil {
		return nil, err
	}
	return r.library.ReadScan(s, replies)
}

// together makes calls that travel together, and waits for all. An error is that of one of them.
func (r *remote) together(calls []script.Call) ([]any, error) {
	replies, errs := r.each(calls)
	return replies, errors.Join(errs...)
}

// each makes calls that travel together, and waits for all. An error stands where there is no reply.
func (r *remote) each(calls []script.Call) ([]any, []error) {
	type result struct {
		index int
		reply any
		err   error
	}
	results := make(chan result, len(calls))
	for i, c := range calls {
		r.send(c, func(reply any, err error) { results <- result{i, reply, err} })
	}
	replies, errs := make([]any, len(calls)), make([]error, len(calls))
	for range calls {
		one := <-results
		replies[one.index] = one.reply
		if one.reply == nil {
			errs[one.index] = one.err
		}
	}
	return replies, errs
}
