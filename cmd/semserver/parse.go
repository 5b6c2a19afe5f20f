package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/semserver/semserver/admin"
	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/internal/cli"
	"github.com/semserver/semserver/internal/version"
	"github.com/semserver/semserver/redisbackend"
	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/server"
)

const description = `A counting semaphore server that speaks the Redis protocol.

Without flags: one durable node on 127.0.0.1:7360 with its data in ./semserver-data. With --redis: a server whose semaphores are in that Redis.

A flag may also be set by the environment (SEMSERVER_MAX_CLIENTS for --max-clients) or in the file that --config names. The command line comes first, then the environment, then the file. TIME is written as 300ms, 5s, 1h30m.`

// config is a checked configuration.
type config struct {
	flags
	password string
	secret   []byte   // of the cluster; nil: none
	labelled bool     // --node-id was given
	unknown  []string // environment variables that look like ours and have no effect
	page     string   // help or version, to be printed in place of starting
}

// parse reads the configuration from the command line, the environment and the file, in that order
// of precedence, and checks it. Nothing is touched but the files that it names.
func parse(args []string, env environment) (config, error) {
	args = cli.JoinNegative(args)
	vars := &envResolver{env: env}
	f, g, page, err := readFlags(args, vars)
	if err != nil || page != "" {
		return config{page: page}, err
	}
	if f.Config != "" {
		file, err := readFile(f.Config)
		if err != nil {
			return config{}, fmt.Errorf("--config: %w", err)
		}
		if f, g, _, err = readFlags(args, vars, file.resolver()); err != nil {
			return config{}, err
		}
	}
	if err := g.check(f.Redis.on()); err != nil {
		return config{}, err
	}
	c, err := f.check()
	c.unknown = vars.unknown
	return c, err
}

// readFlags returns the flags, and which of them were given, or the page that they ask for.
func readFlags(args []string, vars *envResolver, files ...kong.Resolver) (f flags, g given, page string, err error) {
	// Of several resolvers that know a flag, kong takes the last one.
	parser, err := newParser(&f, append(files, vars)...)
	if err != nil {
		return f, g, "", fmt.Errorf("declare flags: %w", err)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return f, g, "", err
	}
	switch {
	case f.Help:
		var b bytes.Buffer
		ctx.Stdout = &b
		err = ctx.PrintUsage(false)
		return f, g, b.String(), err
	case f.Version:
		return f, g, "semserver " + version.Name() + "\n", nil
	}
	return f, byMode(ctx, vars.env), "", nil
}

func newParser(f *flags, resolvers ...kong.Resolver) (*kong.Kong, error) {
	return kong.New(f,
		kong.Name("semserver"),
		kong.Description(description),
		kong.NoDefaultHelp(),
		kong.Resolvers(resolvers...),
		cli.Durations(),
		kong.TypeMapper(reflect.TypeFor[[]capacityRule](), kong.MapperFunc(decodeRules)),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		variables(),
	)
}

// variables are the defaults that flags.go names, from the packages that own them.
func variables() kong.Vars {
	d, e, r := server.DefaultConfig(), cluster.DefaultConfig(), redisbackend.DefaultConfig(link.Target{})
	return kong.Vars{
		"max_waiters":     strconv.Itoa(d.Limits.MaxWaiters),
		"max_waiters_all": strconv.Itoa(d.Limits.MaxWaitersAll),
		"max_semaphores":  strconv.Itoa(d.Limits.MaxSemaphores),
		"max_wait":        short(d.MaxWait),
		"max_lease":       short(d.MaxLease),
		"default_lease":   short(d.Limits.DefaultLease),
		"default_idle":    short(d.Limits.DefaultIdle),

		"max_clients":             strconv.Itoa(d.MaxClients),
		"max_clients_per_address": strconv.Itoa(d.MaxClientsPerAddress),
		"max_http_clients":        strconv.Itoa(admin.DefaultMaxClients),
		"idle_timeout":            short(d.IdleTimeout),
		"handshake_timeout":       short(d.HandshakeTimeout),
		"write_timeout":           short(d.WriteTimeout),
		"max_output":              strconv.Itoa(d.MaxOutput),
		"max_arguments":           strconv.Itoa(d.Wire.Arguments),
		"max_command":             strconv.Itoa(d.Wire.Command),
		"max_inline":              strconv.Itoa(d.Wire.Inline),
		"max_anonymous_arguments": strconv.Itoa(d.Wire.AnonArgs),
		"max_anonymous_bulk":      strconv.Itoa(d.Wire.AnonBulk),
		"max_read_ahead":          strconv.Itoa(d.Wire.ReadAhead),
		"max_subscriptions":       strconv.Itoa(d.Wire.Subscribing),

		"log_store":      e.LogStore,
		"hold":           short(e.Hold),
		"waiter_grace":   short(e.WaiterGrace),
		"snapshot_bytes": strconv.FormatInt(e.SnapshotBytes, 10),

		"redis_prefix":       r.Prefix,
		"redis_hash_tag":     string(r.HashTag),
		"redis_timeout":      short(r.Link.Timeout),
		"redis_wait_timeout": short(r.Link.ReplicaTimeout),
		"reconcile_every":    short(r.ReconcileEvery),
		"reconcile_grace":    short(r.ReconcileGrace),

		"peer_listen":      defaultPeerListen,
		"election_timeout": short(e.ElectionTimeout),
		"max_peers":        strconv.Itoa(e.MaxPeers),
	}
}

// short writes a duration without the zero units at its end: 1h, not 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
