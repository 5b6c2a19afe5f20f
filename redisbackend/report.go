package redisbackend

import (
	"strconv"

	"github.com/semserver/semserver/redisbackend/link"
)

// Report says how the engine stands, for the Redisbackend section of INFO.
func (e *Engine) Report() []link.Figure {
	own := []link.Figure{
		{Name: "redis_prefix", Value: e.cfg.Prefix},
		{Name: "redis_hash_tag", Value: string(e.cfg.HashTag)},
		{Name: "redis_wait_replicas", Value: strconv.Itoa(e.cfg.Link.Replicas)},
		{Name: "redis_waiters", Value: strconv.FormatInt(e.core.office.waiters.Load(), 10)},
	}
	return append(e.remote.link.Report(), own...)
}
