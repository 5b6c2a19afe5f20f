package link

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/redisbackend/script"
)

// minMajor is the first version of Redis that has all that scripts and messages need: flags of scripts
// and sharded channels.
const minMajor = 7

// misfit is a Redis that we cannot work with, however long we wait.
type misfit struct{ why string }

func (m *misfit) Error() string { return m.why }

// facts are what a server says of itself.
type facts struct {
	version string
	evicts  string // the policy by which it may drop keys of ours; empty: it drops none
}

// look asks a server what it is and what time it has, and whether it is one that we want.
func (w *wire) look(ctx context.Context, mode Mode, c *clock) (facts, error) {
	before := c.own()
	pipe := w.Pipeline()
	info, clockTime := pipe.Info(ctx), pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each has its own error
	after := c.own()
	if err := info.Err(); err != nil {
		return facts{}, fmt.Errorf("look at the server: %w", err)
	}
	f, err := examine(mode, fields(info.Val()))
	if err != nil {
		return facts{}, err
	}
	if err := clockTime.Err(); err != nil {
		return facts{}, fmt.Errorf("look at the clock: %w", err)
	}
	c.see(sinceEpoch(clockTime.Val()), before, after)
	return f, nil
}

// fields are those of INFO.
func fields(info string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[key] = value
		}
	}
	return all
}

// examine says whether a server is one that we want.
func examine(mode Mode, info map[string]string) (facts, error) {
	f := facts{version: info["redis_version"]}
	text, _, _ := strings.Cut(f.version, ".")
	major, err := strconv.Atoi(text)
	clustered := info["cluster_enabled"] == "1"
	switch {
	case info["redis_mode"] == "sentinel":
		return f, &misfit{"this is a Sentinel: use redis-sentinel://"}
	case err != nil:
		return f, &misfit{"the server does not say which version of Redis it is"}
	case major < minMajor:
		return f, &misfit{fmt.Sprintf("Redis %s is too old: %d.0 or later is needed", f.version, minMajor)}
	case clustered && mode != Cluster:
		return f, &misfit{"this server is a node of a Redis Cluster: use redis-cluster://"}
	case !clustered && mode == Cluster:
		return f, &misfit{"this server is not a node of a Redis Cluster: use redis:// or redis-sentinel://"}
	case info["loading"] == "1":
		return f, errors.New("LOADING Redis is loading its data")
	case info["role"] != "master":
		return f, errors.New("READONLY this server is a replica")
	}
	if policy := info["maxmemory_policy"]; info["maxmemory"] != "0" && policy != "noeviction" {
		f.evicts = policy
	}
	return f, nil
}

// prepare makes the scripts known to the server.
func (w *wire) prepare(ctx context.Context, scripts []*script.Script) error {
	if len(scripts) == 0 {
		return nil
	}
	pipe := w.Pipeline()
	for _, s := range scripts {
		pipe.ScriptLoad(ctx, s.Source)
	}
	loaded, err := pipe.Exec(ctx)
	if err != nil {
		for i, cmd := range loaded {
			if reply := redis.Error(nil); errors.As(cmd.Err(), &reply) && strings.HasPrefix(reply.Error(), "ERR Error compiling script") {
				return &misfit{fmt.Sprintf("script %s: %s", scripts[i].Name, oneLine(reply))}
			}
		}
		return fmt.Errorf("load scripts: %w", err)
	}
	return nil
}

// time looks at the clock of the server.
func (w *wire) time(ctx context.Context, c *clock) error {
	before := c.own()
	at, err := w.Time(ctx).Result()
	if err != nil {
		return err
	}
	c.see(sinceEpoch(at), before, c.own())
	return nil
}

func sinceEpoch(at time.Time) time.Duration { return time.Duration(at.UnixNano()) }
