package link

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
)

// The defaults of limits.
const (
	// DefaultTimeout is short, because whoever waits for an answer learns that it is not known one
	// timeout later at the earliest.
	DefaultTimeout        = 500 * time.Millisecond
	DefaultReplicaTimeout = 500 * time.Millisecond
	DefaultLanes          = 2
)

// Options say which Redis, and how.
type Options struct {
	Target Target

	// PasswordFile's first line is the password, in place of the URL's. It is read for each connection.
	PasswordFile string
	// SentinelUsername and SentinelPasswordFile are for the Sentinels themselves, who do not know the
	// users of the servers that they watch.
	SentinelUsername, SentinelPasswordFile string
	// Files for TLS, PEM: whom we trust (none: whom the system trusts), and what we show. They are read
	// for each connection.
	CAFile, CertFile, KeyFile string
	// ServerName is expected in certificates; empty: the host that is dialled.
	ServerName string

	// Scripts are all that will be called.
	Scripts []*script.Script
	// Replicas that must have acknowledged a call before it counts, within ReplicaTimeout.
	Replicas       int
	ReplicaTimeout time.Duration
	// Timeout is how long a connection, and a reply, may take.
	Timeout time.Duration
	// Lanes are the connections to each server, each with one batch of calls under way.
	Lanes int

	// Hear is told what comes on channels that were subscribed to. It is called from several goroutines
	// and must not block. Nil, if there are no subscriptions.
	Hear   func(Message)
	Logger *slog.Logger
}

// DefaultOptions are those that cannot be left empty, for a target.
func DefaultOptions(t Target) Options {
	return Options{
		Target:         t,
		ReplicaTimeout: DefaultReplicaTimeout,
		Timeout:        DefaultTimeout,
		Lanes:          DefaultLanes,
		Logger:         slog.New(slog.DiscardHandler),
	}
}

// Validate names what contradicts itself, or cannot be read, before anything is dialled.
func (o Options) Validate() error {
	t := o.Target
	tls := o.CAFile != "" || o.CertFile != "" || o.KeyFile != "" || o.ServerName != ""
	switch {
	case len(t.Addrs) == 0:
		return errors.New("no address of a Redis")
	case tls && !t.TLS:
		return errors.New("files for TLS are given, but the URL is not one of rediss://, rediss-sentinel:// and rediss-cluster://")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("a certificate and its key are given together")
	case o.PasswordFile != "" && t.Password != "":
		return errors.New("a password is given twice, in the URL and by file")
	case t.Mode != Sentinel && (o.SentinelUsername != "" || o.SentinelPasswordFile != ""):
		return errors.New("a login for Sentinels is given, but the URL names none")
	case o.Replicas < 0 || o.Timeout <= 0 || o.ReplicaTimeout <= 0 || o.Lanes < 1:
		return errors.New("replicas are 0 or more, times and lanes more than 0")
	}
	// Millis travel as whole numbers, and 0 would mean to wait for ever.
	if o.Timeout < time.Millisecond || o.ReplicaTimeout < time.Millisecond {
		return errors.New("timeouts are a millisecond or more")
	}
	server, sentinel := o.credentials()
	for _, c := range []credentials{server, sentinel} {
		if _, err := c.password(); err != nil {
			return err
		}
	}
	if _, err := o.tlsConfig("localhost"); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return nil
}

// credentials are the logins for servers and for Sentinels.
func (o Options) credentials() (server, sentinel credentials) {
	return credentials{o.Target.Username, o.Target.Password, o.PasswordFile},
		credentials{username: o.SentinelUsername, file: o.SentinelPasswordFile}
}
