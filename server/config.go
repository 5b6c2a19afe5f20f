package server

import (
	"log/slog"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// Config is what a Server is told. The zero value of a field is not its default: start from
// [DefaultConfig].
type Config struct {
	// Limits are those that the backend enforces; the server only reports them.
	Limits semaphore.Limits
	// MaxWait and MaxLease are the longest WAIT and LEASE that a client may ask for.
	MaxWait, MaxLease time.Duration
	// DefaultCapacity says which unknown semaphores an Acquire without CAPACITY creates. The first
	// rule whose pattern matches the key counts.
	DefaultCapacity []CapacityRule

	// Password that clients must give by AUTH or HELLO; empty: none is asked for.
	Password string
	// Protected refuses TCP clients from beyond loopback while there is no Password.
	Protected bool

	// MaxClients is the largest number of connections, MaxClientsPerAddress that of one remote
	// address (0: no cap; loopback and unix sockets are never capped).
	MaxClients, MaxClientsPerAddress int
	// Wire bounds what one request may take.
	Wire WireLimits
	// MaxOutput is the number of reply bytes at which a connection stops executing the pipeline that
	// it has been sent until those replies are written.
	MaxOutput int
	// IdleTimeout closes a connection that has sent nothing for so long; 0: never. Waiting in line
	// is not being idle.
	IdleTimeout time.Duration
	// HandshakeTimeout is how long a new connection may take to complete its first command and,
	// where a password is set, to authenticate, and any connection to send the rest of a command that
	// it has begun; 0: for ever.
	HandshakeTimeout time.Duration
	// WriteTimeout is how long one write to a client that does not read may take; 0: for ever. It may
	// be cut an eighth short. It also ends the standstill with a client that sends more than MaxOutput
	// and the sockets between us can answer before it reads.
	WriteTimeout time.Duration

	// Version is shown by INFO.
	Version string
	// Logger receives one line for every event that an operator would act on.
	Logger *slog.Logger
	// Report, unless nil, adds sections to INFO. It is called for every INFO, from many goroutines.
	Report func() []Section
	// Ready returns nil while the backend can decide requests, else why not; nil: it always can. INFO says
	// so, to clients who would look for another server. It is called from many goroutines, and returns at once.
	Ready func() error
	// Members, unless nil, is what SEM.NODE and CLUSTER show, and Care what SEM.NODE does.
	Members Members
	Care    Care
	// ClusterCommands shows the nodes to clients as a Redis Cluster of one shard, by CLUSTER. It
	// needs Members. Clients that ask unprompted whether this is a Redis Cluster are told no without it.
	ClusterCommands bool
	// Metrics counts what the server does; nil: counted for INFO alone.
	Metrics *Metrics
}

// CapacityRule gives semaphores whose key matches the pattern (a glob as in Redis) a capacity.
type CapacityRule struct {
	Pattern  string
	Capacity int64
}

// WireLimits bound one request before memory is spent on it.
type WireLimits struct {
	Arguments   int // arguments of one command
	Command     int // bytes of one command
	Inline      int // bytes of one inline command
	AnonArgs    int // arguments of a command from a client that has yet to authenticate
	AnonBulk    int // bytes of one argument from such a client
	ReadAhead   int // bytes read ahead from a client whose command waits in line
	Subscribing int // channels and patterns that one connection may subscribe to
}

// DefaultConfig returns the configuration of a server without flags.
func DefaultConfig() Config {
	return Config{
		Limits:           semaphore.DefaultLimits(),
		MaxWait:          time.Hour,
		MaxLease:         24 * time.Hour,
		Protected:        true,
		MaxClients:       20_000,
		Wire:             DefaultWireLimits(),
		MaxOutput:        256 << 10,
		HandshakeTimeout: 30 * time.Second,
		WriteTimeout:     30 * time.Second,
		Version:          "dev",
		Logger:           slog.Default(),
	}
}

// DefaultWireLimits returns the limits of a server without flags.
func DefaultWireLimits() WireLimits {
	return WireLimits{
		Arguments:   1024,
		Command:     1 << 20,
		Inline:      64 << 10,
		AnonArgs:    10,
		AnonBulk:    16 << 10,
		ReadAhead:   64 << 10,
		Subscribing: 1024,
	}
}

// Section is a part of the reply to INFO.
type Section struct {
	Name   string
	Fields []Field
}

// Field is one line of a Section.
type Field struct {
	Name, Value string
}
