package main

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/internal/version"
	"github.com/semserver/semserver/redisbackend"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/server"
)

// engine is the engine as the other parts see it. It exists before it is open, because opening a large
// data directory, or reaching a Redis, takes time in which probes must be answered.
type engine struct {
	opened atomic.Pointer[opened]
}

// opened is an engine of either kind.
type opened struct {
	backend
	report  func() []server.Section // its part of INFO
	members server.Members
	care    server.Care
}

// backend is what this package asks of an engine.
type backend interface {
	semaphore.Backend
	// Ready says why requests are not decided now; nil: they are.
	Ready() error
	// HandOver lets another server go on with what this one does, before it is closed.
	HandOver()
	// Halt tells whoever waits for a decision that there is none.
	Halt()
	Close() error
}

// Ready implements admin.Engine.
func (e *engine) Ready() error {
	o := e.opened.Load()
	if o == nil {
		return errors.New("the engine is opening")
	}
	return o.Ready()
}

// openEngine opens the engine that the flags choose.
func (a *app) openEngine(registry prometheus.Registerer) (*opened, error) {
	if a.cfg.Redis.on() {
		return a.openRedis(registry)
	}
	n := a.cfg.nodeConfig(cluster.NewMetrics(registry), a.log)
	n.ClientAdvertise = a.cfg.clientAdvertise(a.listeners.tcp)
	n.Removed = a.fail
	node, err := cluster.Open(n)
	if err != nil {
		return nil, err
	}
	report := func() []server.Section { return []server.Section{section("Raft", node.Report())} }
	return &opened{node, report, members{node}, members{node}}, nil
}

// openRedis opens the engine of Redis mode.
func (a *app) openRedis(registry prometheus.Registerer) (*opened, error) {
	r, err := a.cfg.redisConfig(redisbackend.NewMetrics(registry), a.log)
	if err != nil {
		return nil, err
	}
	e, err := redisbackend.Open(r)
	if err != nil {
		return nil, err
	}
	report := func() []server.Section { return []server.Section{section("Redisbackend", e.Report())} }
	return &opened{onRedis{e}, report, nobody{}, nobody{}}, nil
}

// onRedis is an engine that has nothing to hand over: other servers on its Redis go on anyway.
type onRedis struct{ *redisbackend.Engine }

// HandOver implements backend.
func (onRedis) HandOver() {}

// section is a section of INFO.
func section[F ~struct{ Name, Value string }](name string, figures []F) server.Section {
	s := server.Section{Name: name}
	for _, f := range figures {
		s.Fields = append(s.Fields, server.Field(f))
	}
	return s
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
