package redisbackend

import (
	"context"

	"github.com/semserver/semserver/semaphore"
)

func (e *Engine) tend(ctx context.Context)                    { <-ctx.Done() }
func (e *Engine) scan(r semaphore.Scan) semaphore.Reply       { return semaphore.Reply{} }
func (e *Engine) holders(r semaphore.Holders) semaphore.Reply { return semaphore.Reply{} }
