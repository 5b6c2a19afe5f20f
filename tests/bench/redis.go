package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// acquireScript is a semaphore's acquire as a Redis script: take a free permit, read the time, make a
// token, note the holder with the end of its lease.
const acquireScript = `
if not redis.call('RPOP', KEYS[1]) then return false end
local t = redis.call('TIME')
local token = redis.call('INCR', KEYS[3])
redis.call('ZADD', KEYS[2], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2], ARGV[1])
return {ARGV[1], token}`

// redisServer is a running redis-server.
type redisServer struct {
	addr    string
	command *exec.Cmd
	conn    *resp.Conn
	script  string // its SHA1
}

// startRedis runs a redis-server on a folder of its own; flags say what it keeps on disk.
func (b *bench) startRedis(flags ...string) (*redisServer, error) {
	addr, err := node.FreeAddr()
	if err != nil {
		return nil, err
	}
	port, err := resp.Port(addr)
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(b.folder, "redis-")
	if err != nil {
		return nil, fmt.Errorf("make a data directory: %w", err)
	}
	args := []string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", data, "--save", "", "--logfile", "redis.log"}
	r := &redisServer{addr: addr, command: exec.Command("redis-server", append(args, flags...)...)}
	if err := r.command.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	if err := r.connect(); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *redisServer) connect() error {
	var err error
	for range 200 {
		if r.conn, err = resp.Dial(r.addr); err == nil {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	sha, err := r.conn.Do("SCRIPT", "LOAD", acquireScript)
	if err != nil {
		return fmt.Errorf("load the script: %w", err)
	}
	text, ok := sha.(string)
	if !ok {
		return fmt.Errorf("load the script: %v", sha)
	}
	r.script = text
	return nil
}

func (r *redisServer) stop() {
	if r.conn != nil {
		_ = r.conn.Close() // nothing is left to be read
	}
	// It keeps nothing that is needed, and its exit status says only that it was killed.
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
}

func (r *redisServer) address() string { return r.addr }

func (r *redisServer) pid() int { return r.command.Process.Pid }

// prepare empties it and fills the list with free permits.
func (r *redisServer) prepare(permits int) ([]string, error) {
	if _, err := r.conn.Do("FLUSHALL"); err != nil {
		return nil, fmt.Errorf("empty redis: %w", err)
	}
	const batch = 1000
	push := append([]any{"RPUSH", "permits"}, anySlice(strings.Fields(strings.Repeat("p ", batch)))...)
	for range permits/batch + 1 {
		if _, err := r.conn.Do(push...); err != nil {
			return nil, fmt.Errorf("fill redis: %w", err)
		}
	}
	return []string{"EVALSHA", r.script, "3", "permits", "holders", "token", holderPlaceholder, "600000"}, nil
}

// granted counts the holders.
func (r *redisServer) granted() (int64, error) {
	reply, err := r.conn.Do("ZCARD", "holders")
	if err != nil {
		return 0, fmt.Errorf("count grants: %w", err)
	}
	n, _ := reply.(int64)
	return n, nil
}

func anySlice(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}
