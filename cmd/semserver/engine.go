package main

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/internal/version"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/server"
)

// engine is the node as the other parts see it. It exists before the node does, because opening a
// large data directory takes time in which probes must be answered.
type engine struct {
	node atomic.Pointer[cluster.Node]
}

// Ready implements admin.Engine.
func (e *engine) Ready() error {
	node := e.node.Load()
	if node == nil {
		return errors.New("the engine is opening its data directory")
	}
	return node.Ready()
}

// report is the Raft section of INFO.
func (e *engine) report() []server.Section {
	var fields []server.Field
	for _, f := range e.node.Load().Report() {
		fields = append(fields, server.Field(f))
	}
	return []server.Section{{Name: "Raft", Fields: fields}}
}

func (f flags) limits() semaphore.Limits {
	return semaphore.Limits{
		DefaultLease:  f.Limits.DefaultLease,
		DefaultIdle:   f.Limits.DefaultIdle,
		MaxWaiters:    f.Limits.MaxWaiters,
		MaxWaitersAll: f.Limits.MaxWaitersAll,
		MaxSemaphores: f.Limits.MaxSemaphores,
	}
}

// nodeConfig is the configuration of the engine.
func (c config) nodeConfig(metrics *cluster.Metrics, log *slog.Logger) cluster.Config {
	n := cluster.DefaultConfig()
	n.DataDir = c.Engine.DataDir
	n.NodeID = c.Engine.NodeID
	n.LogStore = c.Engine.LogStore
	n.Limits = c.limits()
	n.Hold = c.Engine.Hold
	n.WaiterGrace = c.Engine.WaiterGrace
	n.SnapshotBytes = c.Engine.SnapshotBytes
	c.peering(&n)
	n.Logger = log
	n.Metrics = metrics
	n.Fatal = func(err error) {
		log.Error("stopped by a failure", "error", oneLine(err))
		os.Exit(exitFailure)
	}
	return n
}

// serverConfig is the configuration of the side that clients see.
func (c config) serverConfig(metrics *server.Metrics, log *slog.Logger) server.Config {
	s := server.DefaultConfig()
	s.Limits = c.limits()
	s.MaxWait, s.MaxLease = c.Limits.MaxWait, c.Limits.MaxLease
	for _, r := range c.Limits.DefaultCapacity {
		s.DefaultCapacity = append(s.DefaultCapacity, server.CapacityRule(r))
	}
	s.Password = c.password
	s.Protected = c.Access.ProtectedMode == "yes"
	s.MaxClients, s.MaxClientsPerAddress = c.Wire.MaxClients, c.Wire.MaxClientsPerAddress
	s.Wire = server.WireLimits{
		Arguments:   c.Wire.MaxArguments,
		Command:     c.Wire.MaxCommand,
		Inline:      c.Wire.MaxInline,
		AnonArgs:    c.Wire.MaxAnonymousArguments,
		AnonBulk:    c.Wire.MaxAnonymousBulk,
		ReadAhead:   c.Wire.MaxReadAhead,
		Subscribing: c.Wire.MaxSubscriptions,
	}
	s.MaxOutput = c.Wire.MaxOutput
	s.IdleTimeout = c.Wire.IdleTimeout
	s.HandshakeTimeout = c.Wire.HandshakeTimeout
	s.WriteTimeout = c.Wire.WriteTimeout
	s.ClusterCommands = c.Peers.ClusterCommands == "yes"
	s.Version = version.Name()
	s.Logger = log
	s.Metrics = metrics
	return s
}
