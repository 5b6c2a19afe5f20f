package redisbackend

import "context"

func (e *Engine) tend(ctx context.Context) { <-ctx.Done() }
