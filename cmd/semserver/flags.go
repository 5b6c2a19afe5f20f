package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/semserver/semserver/server"
)

// flags are what can be said on the command line, in the environment and in the file. The defaults
// of limits are those of the packages that keep them (see variables).
type flags struct {
	Help    bool   `short:"h" help:"Print this page and exit."`
	Version bool   `help:"Print the version and exit."`
	Config  string `placeholder:"FILE" help:"Read settings from this YAML or JSON file: one key for each flag, without the dashes."`

	Addresses addressFlags `embed:"" group:"Addresses"`
	Engine    engineFlags  `embed:"" group:"Engine"`
	Peers     peerFlags    `embed:"" group:"Cluster"`
	Redis     redisFlags   `embed:"" group:"Redis"`
	Access    accessFlags  `embed:"" group:"Access"`
	Limits    limitFlags   `embed:"" group:"Limits of semaphores"`
	Wire      wireFlags    `embed:"" group:"Limits of connections"`
	Log       logFlags     `embed:"" group:"Log"`
}

type addressFlags struct {
	Listen string `default:"127.0.0.1:7360" placeholder:"ADDR" help:"Address for clients, host:port (default: ${default}). Empty: off. Port 0: a free one."`
	Unix   string `placeholder:"PATH" help:"Unix socket for clients, readable and writable by owner and group."`
	HTTP   string `name:"http" default:"127.0.0.1:7362" placeholder:"ADDR" help:"Address for /metrics, /livez and /readyz, host:port (default: ${default}). Empty: off."`
}

type engineFlags struct {
	DataDir         string        `mode:"cluster" default:"semserver-data" placeholder:"DIR" help:"Directory of the log and the snapshots; made if there is none (default: ${default})."`
	NodeID          string        `mode:"cluster" placeholder:"LABEL" help:"Label that this node shows in SEM.NODE LIST and INFO (default: the host's name)."`
	LogStore        string        `mode:"cluster" default:"${log_store}" enum:"wal,boltdb" placeholder:"NAME" help:"Store of the log: ${enum} (default: ${default}). A data directory keeps the store it was made with."`
	Hold            time.Duration `default:"${hold}" placeholder:"TIME" help:"How long a request is held while there is no leader, or Redis cannot be reached, before it is answered CLUSTERDOWN (default: ${default})."`
	WaiterGrace     time.Duration `mode:"cluster" default:"${waiter_grace}" placeholder:"TIME" help:"How long waiters keep their place after their node was lost (default: ${default})."`
	SnapshotBytes   int64         `mode:"cluster" default:"${snapshot_bytes}" placeholder:"BYTES" help:"Bytes of log after which a snapshot is taken and the log is cut (default: ${default})."`
	ShutdownTimeout time.Duration `default:"10s" placeholder:"TIME" help:"How long a graceful stop waits for clients to take their replies (default: ${default})."`
}

// peerFlags are about the other nodes. Without any of them a node is a cluster of one.
type peerFlags struct {
	PeerListen        string        `placeholder:"ADDR" help:"Address for the other nodes, host:port (default: ${peer_listen}, where the node is part of a cluster)."`
	PeerAdvertise     string        `placeholder:"ADDR" help:"Address under which the other nodes reach this one, host:port (default: --peer-listen). Needed where that names every interface."`
	ClientAdvertise   string        `placeholder:"ADDR" help:"Address under which clients reach this node, host:port, as the nodes show it (default: --listen; where that names every interface, with the host of --peer-advertise)."`
	BootstrapExpect   int           `default:"0" placeholder:"N" help:"How many empty nodes form a new cluster when they have found each other by --join (default: ${default}). 0: an empty node waits to be taken into one."`
	Join              []string      `sep:"none" placeholder:"ADDR,…" help:"Addresses of other nodes, as they advertise them. Repeatable; a name stands for all its addresses and is looked up anew each time. This node's own may be among them."`
	ClusterSecretFile string        `placeholder:"FILE" help:"File whose first line, of at least 32 characters, is known to the nodes of this cluster alone, who encrypt and authenticate by it."`
	PeerCert          string        `placeholder:"FILE" help:"Certificate of this node for the others, PEM; with --peer-key and --peer-ca. The three are read again when they change."`
	PeerKey           string        `placeholder:"FILE" help:"Private key of --peer-cert, PEM."`
	PeerCA            string        `name:"peer-ca" placeholder:"FILE" help:"Certificates of the authorities whose certificates the other nodes must show, PEM."`
	PlainPeers        bool          `help:"Speak to nodes beyond loopback without encryption and authentication: whoever reaches the port can do anything."`
	ElectionTimeout   time.Duration `default:"${election_timeout}" placeholder:"TIME" help:"How long a leader may be silent before another is elected (default: ${default})."`
	MaxPeers          int           `default:"${max_peers}" placeholder:"N" help:"Connections from other nodes (default: ${default})."`
	ClusterCommands   string        `default:"no" enum:"yes,no" placeholder:"yes|no" help:"Show the nodes to clients as a Redis Cluster of one shard, whose master is the leader (default: ${default})."`
	Restore           string        `placeholder:"FILE" help:"Begin a new cluster of one with the state in this file, which SEM.NODE SNAPSHOT wrote. Needs an empty data directory."`
	RecoverSingle     bool          `help:"Go on as a cluster of one, when most nodes are lost for ever. What they alone knew is lost too."`
}

type accessFlags struct {
	PasswordFile  string `placeholder:"FILE" help:"File whose first line is the password that clients must give by AUTH. None: no password is asked for."`
	ProtectedMode string `default:"yes" enum:"yes,no" placeholder:"yes|no" help:"Refuse clients from beyond loopback while there is no password (default: ${default})."`
}

type limitFlags struct {
	MaxWaiters      int            `default:"${max_waiters}" placeholder:"N" help:"Waiters in one line; beyond it: QUEUEFULL (default: ${default})."`
	MaxWaitersAll   int            `default:"${max_waiters_all}" placeholder:"N" help:"Waiters in all lines together (default: ${default})."`
	MaxSemaphores   int            `default:"${max_semaphores}" placeholder:"N" help:"Semaphores in all (default: ${default})."`
	MaxWait         time.Duration  `default:"${max_wait}" placeholder:"TIME" help:"Longest WAIT that a client may ask for (default: ${default})."`
	MaxLease        time.Duration  `default:"${max_lease}" placeholder:"TIME" help:"Longest LEASE that a client may ask for (default: ${default})."`
	DefaultLease    time.Duration  `default:"${default_lease}" placeholder:"TIME" help:"Lease where neither the request nor the semaphore names one (default: ${default})."`
	DefaultIdle     time.Duration  `default:"${default_idle}" placeholder:"TIME" help:"How long an unused semaphore is kept that an ACQUIRE created (default: ${default})."`
	DefaultCapacity []capacityRule `sep:"none" placeholder:"PATTERN=N" help:"Create an unknown semaphore whose name matches this glob, with this capacity, on ACQUIRE. Repeatable; the first match counts."`
}

type wireFlags struct {
	MaxClients            int           `default:"${max_clients}" placeholder:"N" help:"Connections in all (default: ${default})."`
	MaxClientsPerAddress  int           `default:"${max_clients_per_address}" placeholder:"N" help:"Connections from one address beyond loopback (default: ${default}). 0: no cap."`
	MaxHTTPClients        int           `name:"max-http-clients" default:"${max_http_clients}" placeholder:"N" help:"Connections to --http; beyond it the one is closed that has been silent for longest (default: ${default})."`
	IdleTimeout           time.Duration `default:"${idle_timeout}" placeholder:"TIME" help:"Close a connection that has sent nothing for so long and does not wait in line (default: ${default}). 0s: never."`
	HandshakeTimeout      time.Duration `default:"${handshake_timeout}" placeholder:"TIME" help:"Time for the first command, for AUTH where there is a password, and for the rest of a command that was begun (default: ${default}). 0s: no limit."`
	WriteTimeout          time.Duration `default:"${write_timeout}" placeholder:"TIME" help:"Time for one write to a client that does not read (default: ${default}). 0s: no limit."`
	MaxOutput             int           `default:"${max_output}" placeholder:"BYTES" help:"Bytes of unwritten replies at which a connection's pipeline is halted (default: ${default})."`
	MaxArguments          int           `default:"${max_arguments}" placeholder:"N" help:"Arguments of one command (default: ${default})."`
	MaxCommand            int           `default:"${max_command}" placeholder:"BYTES" help:"Size of one command (default: ${default})."`
	MaxInline             int           `default:"${max_inline}" placeholder:"BYTES" help:"Size of one inline command (default: ${default})."`
	MaxAnonymousArguments int           `default:"${max_anonymous_arguments}" placeholder:"N" help:"Arguments of one command before AUTH, with a password (default: ${default})."`
	MaxAnonymousBulk      int           `default:"${max_anonymous_bulk}" placeholder:"BYTES" help:"Size of one argument before AUTH, with a password (default: ${default})."`
	MaxReadAhead          int           `default:"${max_read_ahead}" placeholder:"BYTES" help:"Bytes read ahead from a client whose command waits in line (default: ${default})."`
	MaxSubscriptions      int           `default:"${max_subscriptions}" placeholder:"N" help:"Channels and patterns that one connection may subscribe to (default: ${default})."`
}

type logFlags struct {
	Format string `name:"log-format" default:"text" enum:"text,json" placeholder:"NAME" help:"Form of the log on stderr: ${enum} (default: ${default})."`
	Level  string `name:"log-level" default:"info" enum:"debug,info,warn,error" placeholder:"NAME" help:"Lowest level that is logged: ${enum} (default: ${default})."`
}

// capacityRule is server.CapacityRule as it is written: PATTERN=N.
type capacityRule server.CapacityRule

// decodeRules is a kong.MapperFunc for []capacityRule: it adds one rule from the command line, or all
// that the environment or the file has.
func decodeRules(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("PATTERN=N")
	if err != nil {
		return err
	}
	values, isList := token.Value.([]any)
	if !isList {
		values = []any{token.Value}
	}
	for _, v := range values {
		rule, err := parseRule(fmt.Sprint(v))
		if err != nil {
			return err
		}
		target.Set(reflect.Append(target, reflect.ValueOf(rule)))
	}
	return nil
}

// parseRule reads PATTERN=N. The pattern may contain "=" itself.
func parseRule(text string) (capacityRule, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return capacityRule{}, fmt.Errorf("%.100q is not PATTERN=N", text)
	}
	n, err := strconv.ParseInt(text[i+1:], 10, 64)
	if err != nil {
		return capacityRule{}, fmt.Errorf("%.100q: the capacity is not a whole number that fits into 64 bits", text)
	}
	return capacityRule{Pattern: text[:i], Capacity: n}, nil
}
