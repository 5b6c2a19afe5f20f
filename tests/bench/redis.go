package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// redisServer is a running redis-server.
type redisServer struct {
	addr    string
	command *exec.Cmd
	conn    *resp.Conn
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

func (r *redisServer) flags() []string { return []string{"--redis"} }
