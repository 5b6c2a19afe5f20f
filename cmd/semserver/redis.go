package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/semserver/semserver/redisbackend"
	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// Bounds of what is said about Redis. Whoever waits for an answer is told within a second after WAIT, so
// Redis is not waited for for long.
const (
	minRedisTimeout = 10 * time.Millisecond
	maxRedisTimeout = 10 * time.Second
	maxReplicas     = 100
)

// redisFlags are about the Redis that keeps the semaphores. Without --redis there is none.
type redisFlags struct {
	URL                  string        `name:"redis" placeholder:"URL" help:"Keep semaphores in this Redis, 7.0 or later: redis://user:password@host:port/db, unix:/path?db=n, redis-sentinel://host:port,…/MASTER?db=n, redis-cluster://host:port,…; rediss://, rediss-sentinel:// or rediss-cluster:// over TLS."`
	Prefix               string        `name:"redis-prefix" default:"${redis_prefix}" placeholder:"TEXT" help:"What the keys of semaphores begin with (default: ${default})."`
	HashTag              string        `name:"redis-hash-tag" default:"${redis_hash_tag}" enum:"auto,always,never" placeholder:"WHEN" help:"Wrap the name in braces within keys, as a Redis Cluster needs it: ${enum} (default: ${default}). auto: on a Redis Cluster."`
	Username             string        `name:"redis-username" placeholder:"NAME" help:"User of that Redis, in place of the URL's."`
	PasswordFile         string        `name:"redis-password-file" placeholder:"FILE" help:"File whose first line is the password for that Redis, in place of the URL's. It is read again for each connection."`
	SentinelUsername     string        `name:"redis-sentinel-username" placeholder:"NAME" help:"User of the Sentinels."`
	SentinelPasswordFile string        `name:"redis-sentinel-password-file" placeholder:"FILE" help:"File whose first line is the password for the Sentinels."`
	CA                   string        `name:"redis-ca" placeholder:"FILE" help:"Certificates of the authorities whose certificates that Redis must show, PEM (default: those that the system trusts)."`
	Cert                 string        `name:"redis-cert" placeholder:"FILE" help:"Certificate of this server for that Redis, PEM; with --redis-key. They are read again for each connection."`
	Key                  string        `name:"redis-key" placeholder:"FILE" help:"Private key of --redis-cert, PEM."`
	ServerName           string        `name:"redis-server-name" placeholder:"NAME" help:"Name in the certificates that Redis shows (default: the host that is connected to)."`
	Timeout              time.Duration `name:"redis-timeout" default:"${redis_timeout}" placeholder:"TIME" help:"How long a connection or a reply may take; then the outcome is looked up (default: ${default})."`
	WaitReplicas         int           `name:"redis-wait-replicas" default:"0" placeholder:"N" help:"Replicas that must have acknowledged a grant before it is told (default: ${default})."`
	WaitTimeout          time.Duration `name:"redis-wait-timeout" default:"${redis_wait_timeout}" placeholder:"TIME" help:"How long --redis-wait-replicas may take (default: ${default})."`
	ReconcileEvery       time.Duration `default:"${reconcile_every}" placeholder:"TIME" help:"How often one of the servers looks whether the books of all semaphores balance (default: ${default})."`
	ReconcileGrace       time.Duration `default:"${reconcile_grace}" placeholder:"TIME" help:"How long permits must have been missing, with nobody touching the List or the ZSET, until they are restored unasked (default: ${default})."`
}

// on says whether the node runs in Redis mode.
func (f redisFlags) on() bool { return f.URL != "" }

func (f redisFlags) check() error {
	if !f.on() {
		return nil
	}
	err := cmp.Or(
		within("--redis-timeout", f.Timeout, minRedisTimeout, maxRedisTimeout),
		within("--redis-wait-timeout", f.WaitTimeout, minRedisTimeout, maxRedisTimeout),
		within("--redis-wait-replicas", f.WaitReplicas, 0, maxReplicas),
		within("--reconcile-every", f.ReconcileEvery, 100*time.Millisecond, time.Hour),
		within("--reconcile-grace", f.ReconcileGrace, 100*time.Millisecond, time.Hour),
	)
	if err != nil {
		return err
	}
	if len(f.Prefix) > semaphore.MaxName {
		return fmt.Errorf("--redis-prefix is longer than %d bytes", semaphore.MaxName)
	}
	options, err := f.options()
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	cluster := options.Target.Mode == link.Cluster
	if _, err := script.NewLayout(f.Prefix, script.Tagging(f.HashTag), cluster); err != nil {
		return fmt.Errorf("--redis-prefix, --redis-hash-tag: %w", err)
	}
	return nil
}

// options say how that Redis is reached.
func (f redisFlags) options() (link.Options, error) {
	target, err := link.ParseURL(f.URL)
	if err != nil {
		return link.Options{}, err
	}
	if f.Username != "" && target.Username != "" {
		return link.Options{}, fmt.Errorf("a user is given twice, in the URL and by --redis-username")
	}
	target.Username = cmp.Or(target.Username, f.Username)
	o := link.DefaultOptions(target)
	o.PasswordFile = f.PasswordFile
	o.SentinelUsername, o.SentinelPasswordFile = f.SentinelUsername, f.SentinelPasswordFile
	o.CAFile, o.CertFile, o.KeyFile, o.ServerName = f.CA, f.Cert, f.Key, f.ServerName
	o.Timeout, o.Replicas, o.ReplicaTimeout = f.Timeout, f.WaitReplicas, f.WaitTimeout
	return o, o.Validate()
}

// redisAddress is where that Redis is, for people. It has no password.
func (c config) redisAddress() string {
	target, err := link.ParseURL(c.Redis.URL)
	if err != nil {
		return ""
	}
	return target.String()
}

// redisConfig is the configuration of the engine in Redis mode.
func (c config) redisConfig(metrics *redisbackend.Metrics, log *slog.Logger) (redisbackend.Config, error) {
	options, err := c.Redis.options()
	if err != nil {
		return redisbackend.Config{}, err
	}
	r := redisbackend.DefaultConfig(options.Target)
	r.Link = options
	r.Prefix, r.HashTag = c.Redis.Prefix, script.Tagging(c.Redis.HashTag)
	r.Limits = c.limits()
	r.Hold = c.Engine.Hold
	r.ReconcileEvery, r.ReconcileGrace = c.Redis.ReconcileEvery, c.Redis.ReconcileGrace
	r.Logger = log
	r.Metrics = metrics
	return r, nil
}

// silence is a logger that writes nothing.
type silence struct{}

// Printf implements go-redis's logger.
func (silence) Printf(context.Context, string, ...any) {}
