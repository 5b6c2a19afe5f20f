package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// raftLogger hands what Raft logs to a slog.Logger.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Info})
	l.RegisterSink(sink{log.With("component", "raft")})
	return l
}

type sink struct{ log *slog.Logger }

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(_ string, level hclog.Level, message string, args ...any) {
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	if strings.HasPrefix(message, "heartbeat timeout reached") {
		level = hclog.Info // how every leadership begins
	}
	s.log.Log(context.Background(), severity(level), message, args...)
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
