package main

import (
	"context"
	"log/slog"

	"github.com/semserver/semserver/server"
)

// spareDescriptors are the files that a node opens besides its connections: stores, listeners.
const spareDescriptors = 100

// fit lowers the number of clients to those that there are files for, where the process may open as many as
// limit; 0: that is not known. So one client too many is refused by a word, and the stores can open a file
// at all times. Whoever asked for more is warned, and whoever is left with less than half of what
// everybody gets.
func (c *config) fit(limit uint64, log *slog.Logger) {
	others := uint64(c.Wire.MaxHTTPClients) + spareDescriptors
	if c.Peers.clustered() {
		others += uint64(c.Peers.MaxPeers)
	}
	asked, fallback := c.Wire.MaxClients, server.DefaultConfig().MaxClients
	need := uint64(asked) + others
	if limit == 0 || limit >= need {
		return
	}
	c.Wire.MaxClients = min(asked, max(1, int(limit)/2, int(limit)-int(others)))
	level := slog.LevelInfo
	if asked != fallback || c.Wire.MaxClients < fallback/2 {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, "the process may open fewer files than --max-clients needs",
		"served", c.Wire.MaxClients, "limit", limit, "needed", need)
}
