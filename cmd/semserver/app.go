package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/semserver/semserver/admin"
	"github.com/semserver/semserver/internal/version"
	"github.com/semserver/semserver/server"
)

// readyEvery is how often a starting node looks whether its engine is ready.
const readyEvery = 10 * time.Millisecond

// app is a running node: the parts, wired.
type app struct {
	cfg       config
	log       *slog.Logger
	listeners listeners
	engine    engine
	admin     *admin.Server
	clients   *server.Server // nil until the engine is open

	serving sync.WaitGroup // one goroutine for each listener
	broken  chan error     // why the node must stop, if nobody has asked it to
}

// open starts a node: sockets, probes, engine, clients. It returns when clients are served, which is
// before the engine has elected its leader: requests are held meanwhile. The caller calls run, which
// also closes it.
func open(cfg config, log *slog.Logger) (*app, error) {
	cfg.fit(descriptors(), log)
	a := &app{cfg: cfg, log: log, broken: make(chan error, 1)}
	var err error
	if a.listeners, err = listen(cfg.Addresses); err != nil {
		return nil, err
	}
	registry := admin.NewRegistry(version.Name())
	a.admin = admin.New(&a.engine, registry, cfg.Wire.MaxHTTPClients, log)
	if a.listeners.http != nil {
		a.serve(a.admin.Serve, a.listeners.http)
	}
	o, err := a.openEngine(registry)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open engine: %w", err), a.close())
	}
	a.engine.opened.Store(o)

	s := cfg.serverConfig(server.NewMetrics(registry), log)
	s.Report, s.Members, s.Care, s.Ready = o.report, o.members, o.care, a.engine.Ready
	a.clients = server.New(o, s)
	for _, l := range a.listeners.clients() {
		a.serve(a.clients.Serve, l)
	}
	return a, nil
}

func (a *app) serve(serve func(net.Listener) error, l net.Listener) {
	a.serving.Go(func() {
		if err := serve(l); err != nil {
			a.fail(err)
		}
	})
}

// fail makes run close the node.
func (a *app) fail(why error) {
	select {
	case a.broken <- why:
	default: // one reason to stop is enough
	}
}

// run waits until ctx ends or the node cannot go on, and closes it.
func (a *app) run(ctx context.Context) error {
	a.warn()
	poll := time.NewTicker(readyEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			a.log.Info("stopping")
			return a.close()
		case err := <-a.broken:
			return errors.Join(err, a.close())
		case <-poll.C:
			if a.engine.Ready() == nil {
				poll.Stop()
				a.announce()
			}
		}
	}
}

// announce is the line that says where the node can be reached.
func (a *app) announce() {
	engine := []any{"peers", a.cfg.Peers.advertise(), "data_dir", a.cfg.Engine.DataDir, "node_id", a.cfg.Engine.NodeID}
	if a.cfg.Redis.on() {
		engine = []any{"redis", a.cfg.redisAddress()}
	}
	a.log.Info("ready", append([]any{
		"listen", address(a.listeners.tcp),
		"unix", address(a.listeners.unix),
		"http", address(a.listeners.http),
		"version", version.Name(),
	}, engine...)...)
}

// warn names what will surprise: settings without effect, clients that are refused although the node
// listens for them, and clients that are not refused although anybody can reach it.
func (a *app) warn() {
	if len(a.cfg.unknown) > 0 {
		a.log.Warn("no flag is set by these environment variables", "names", a.cfg.unknown)
	}
	if a.cfg.Peers.clustered() {
		a.warnOfPeers()
	}
	if a.listeners.tcp == nil || a.cfg.password != "" || loopback(a.listeners.tcp.Addr()) {
		return
	}
	if a.cfg.Access.ProtectedMode == "yes" {
		a.log.Warn("clients from beyond loopback are refused: set --password-file, or --protected-mode no")
		return
	}
	a.log.Warn("anybody who reaches this address can use and change every semaphore: set --password-file")
}

// warnOfPeers names what is allowed among nodes and rarely meant.
func (a *app) warnOfPeers() {
	if n := a.cfg.Peers.BootstrapExpect; n > 0 && n%2 == 0 {
		a.log.Warn("a cluster of an even number of nodes survives no more losses than with one node less", "bootstrap_expect", n)
	}
	if names := a.cfg.Peers.exposed(); len(names) > 0 {
		a.log.Warn("others than the owner can read what nodes authenticate by: restrict it to 0600", "files", names)
	}
	if a.cfg.Peers.PlainPeers {
		a.log.Warn("anybody who reaches the port for nodes can change everything, by --plain-peers", "peer_listen", a.cfg.Peers.listen())
	}
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// close stops the node, in the opposite order of opening. Not ready comes first, so that load
// balancers turn away while clients are still served. Then the clients, while the engine still
// decides what they sent: waiters are answered SHUTDOWN, every other reply is the truth. Then the
// engine and its stores. Probes go last, so that the stop can be watched.
func (a *app) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.Engine.ShutdownTimeout)
	defer cancel()

	a.admin.Leave()
	var errs []error
	engine := a.engine.opened.Load()
	if engine != nil {
		// Whoever still waits for a decision then is told that there is none.
		defer context.AfterFunc(ctx, engine.Halt)()
		engine.HandOver() // first: another node goes on at once, and this one still serves its clients through it
	}
	if a.clients != nil {
		if err := a.clients.Shutdown(ctx); err != nil {
			a.log.Warn("clients did not take their replies in time and were cut off", "error", err)
		}
	}
	if engine != nil {
		errs = append(errs, wrap("close engine", engine.Close()))
	}
	// The drain may have used up ctx; a probe under way is answered in no time.
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	errs = append(errs, a.admin.Shutdown(last))
	a.listeners.close()
	a.serving.Wait()
	return errors.Join(errs...)
}

func wrap(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}
