package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestNoMoreClientsAreServedThanThereAreFilesFor(t *testing.T) {
	for _, c := range []struct {
		args    []string
		limit   uint64
		clients int
		level   string // of what is logged; empty: nothing is
	}{
		{nil, 0, 20000, ""},
		{nil, 1 << 40, 20000, ""},
		{nil, 20356, 20000, ""},
		{nil, 20355, 19999, "INFO"},
		{nil, 10356, 10000, "INFO"},
		{nil, 10355, 9999, "WARN"},
		{nil, 1024, 668, "WARN"},
		{nil, 256, 128, "WARN"},
		{nil, 1, 1, "WARN"},
		{[]string{"--max-clients=30000"}, 20356, 20000, "WARN"},
		{[]string{"--max-clients=30000", "--max-http-clients=1000"}, 20356, 19256, "WARN"},
		{[]string{"--max-clients=100", "--bootstrap-expect=3", "--join=127.0.0.1:1"}, 600, 100, "WARN"},
	} {
		var log bytes.Buffer
		cfg := mustParse(t, nil, c.args...)

		cfg.fit(c.limit, slog.New(slog.NewTextHandler(&log, nil)))

		if cfg.Wire.MaxClients != c.clients {
			t.Errorf("%q, %d files: got %d clients, want %d", c.args, c.limit, cfg.Wire.MaxClients, c.clients)
		}
		if got := log.String(); c.level == "" && got != "" || !strings.Contains(got, "level="+c.level) && c.level != "" {
			t.Errorf("%q, %d files: got %q in the log, want the level %q", c.args, c.limit, got, c.level)
		}
	}
}
