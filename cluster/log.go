package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger hands what Raft logs to a slog.Logger.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Info})
	l.RegisterSink(&sink{log: log.With("component", "raft"), said: make(map[string]time.Time)})
	return l
}

// repeatEvery is how often one message is logged at the most: Raft tries again and again, and says so
// each time, perhaps onto the very disk that is full.
const repeatEvery = 5 * time.Second

// sink hands over one logger's messages.
type sink struct {
	log  *slog.Logger
	mu   sync.Mutex
	said map[string]time.Time // when a message was logged last; Raft has some dozens of them
}

// repeats reports whether the message was logged a moment ago.
func (s *sink) repeats(message string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.said[message]) < repeatEvery {
		return true
	}
	s.said[message] = now
	return false
}

// Accept implements hclog.SinkAdapter.
func (s *sink) Accept(_ string, level hclog.Level, message string, args ...any) {
	if s.repeats(message) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	if ordinary(message) || hungUp(args) {
		level = hclog.Info
	}
	s.log.Log(context.Background(), severity(level), message, args...)
}

// ordinary reports whether Raft warns of what happens in the life of every cluster: how a leadership
// begins, how a new node waits to be found, how it gets its log.
func ordinary(message string) bool {
	for _, prefix := range []string{
		"heartbeat timeout reached", "no known peers", "failed to get previous log", "appendEntries rejected",
	} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

// hungUp reports whether all that happened is that a connection was closed: whoever did it has said why.
func hungUp(args []any) bool {
	for _, a := range args {
		if err, ok := a.(error); ok && (errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)) {
			return true
		}
	}
	return false
}

// severity lowers Raft's levels by what an operator has to act on: its Info is the ordinary life of
// a node.
func severity(level hclog.Level) slog.Level {
	switch level {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
