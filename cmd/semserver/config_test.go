package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/internal/version"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/server"
)

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustParse(t *testing.T, env map[string]string, args ...string) config {
	t.Helper()
	c, err := parse(args, environment(env))
	if err != nil {
		t.Fatalf("parse %q with %v: got %v, want no error", args, env, err)
	}
	return c
}

func TestCommandLineComesBeforeEnvironmentBeforeFileBeforeDefault(t *testing.T) {
	path := file(t, "c.yaml", "max-clients: 300\n")
	inFile := []string{"--config", path}
	inEnv := map[string]string{"SEMSERVER_MAX_CLIENTS": "200"}
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want int
	}{
		{"nothing", nil, nil, 20_000},
		{"file", nil, inFile, 300},
		{"file named by the environment", map[string]string{"SEMSERVER_CONFIG": path}, nil, 300},
		{"environment", inEnv, nil, 200},
		{"environment over file", inEnv, inFile, 200},
		{"command line", nil, []string{"--max-clients=100"}, 100},
		{"command line over file", nil, append([]string{"--max-clients=100"}, inFile...), 100},
		{"command line over both", inEnv, append([]string{"--max-clients=100"}, inFile...), 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mustParse(t, c.env, c.args...).Wire.MaxClients; got != c.want {
				t.Errorf("--max-clients: got %d, want %d", got, c.want)
			}
		})
	}
}

func TestDefaultsAreThoseOfThePackagesThatKeepTheLimits(t *testing.T) {
	c := mustParse(t, nil)

	if got, want := c.limits(), semaphore.DefaultLimits(); got != want {
		t.Errorf("limits: got %+v, want %+v", got, want)
	}
	got, want := c.serverConfig(nil, nil), server.DefaultConfig()
	if got.Wire != want.Wire {
		t.Errorf("wire limits: got %+v, want %+v", got.Wire, want.Wire)
	}
	if got.MaxWait != want.MaxWait || got.MaxLease != want.MaxLease || got.Protected != want.Protected ||
		got.MaxClients != want.MaxClients || got.MaxClientsPerAddress != want.MaxClientsPerAddress ||
		got.MaxOutput != want.MaxOutput || got.IdleTimeout != want.IdleTimeout ||
		got.HandshakeTimeout != want.HandshakeTimeout || got.WriteTimeout != want.WriteTimeout {
		t.Errorf("server: got %+v, want %+v", got, want)
	}
	node, engine := c.nodeConfig(nil, nil), cluster.DefaultConfig()
	if node.LogStore != engine.LogStore || node.Hold != engine.Hold || node.WaiterGrace != engine.WaiterGrace ||
		node.SnapshotBytes != engine.SnapshotBytes || node.ElectionTimeout != engine.ElectionTimeout || node.PeerListen != "" {
		t.Errorf("engine: got %+v, want %+v", node, engine)
	}
	if c.Addresses != (addressFlags{Listen: "127.0.0.1:7360", HTTP: "127.0.0.1:7362"}) {
		t.Errorf("addresses: got %+v", c.Addresses)
	}
	if c.Engine.NodeID == "" {
		t.Error("--node-id: got none, want the host's name")
	}
}

// everyFlag has one flag of each kind and more, each with a value that is not its default.
const everyFlag = `
# JSON would do as well.
listen: 127.0.0.1:1
unix: /run/s.sock
http: ""
data-dir: /data
node-id: n1
log-store: boltdb
hold: 1s
waiter-grace: 2s
snapshot-bytes: 1048576
shutdown-timeout: 3s
peer-listen: 127.0.0.1:2
peer-advertise: localhost:2
client-advertise: n1.example:1
bootstrap-expect: 3
join: [n1.example:2, "n2.example:2,n3.example:2"]
plain-peers: true
election-timeout: 150ms
max-peers: 103
cluster-commands: yes
protected-mode: no
max-waiters: 1
max-waiters-all: 2
max-semaphores: 3
max-wait: 4s
max-lease: 5s
default-lease: 4s
default-idle: 6s
default-capacity: [job:*=4, "a=b=5"]
max-clients: 10
max-clients-per-address: 9
max-http-clients: 11
idle-timeout: 7s
handshake-timeout: 8s
write-timeout: 9s
max-output: 10001
max-arguments: 33
max-command: 10004
max-inline: 10003
max-anonymous-arguments: 8
max-anonymous-bulk: 100
max-read-ahead: 101
max-subscriptions: 102
log-format: json
log-level: debug
`

func TestEverySettingReachesThePackageThatItIsFor(t *testing.T) {
	c := mustParse(t, nil, "--config", file(t, "c.yaml", everyFlag), "--password-file", file(t, "p", "secret\nnot this\n"))

	s := c.serverConfig(nil, nil)
	wantServer := server.Config{
		Limits: semaphore.Limits{
			DefaultLease: 4 * time.Second, DefaultIdle: 6 * time.Second,
			MaxWaiters: 1, MaxWaitersAll: 2, MaxSemaphores: 3,
		},
		MaxWait: 4 * time.Second, MaxLease: 5 * time.Second,
		Password: "secret", MaxClients: 10, MaxClientsPerAddress: 9,
		Wire: server.WireLimits{
			Arguments: 33, Command: 10004, Inline: 10003, AnonArgs: 8, AnonBulk: 100, ReadAhead: 101, Subscribing: 102,
		},
		MaxOutput: 10001, IdleTimeout: 7 * time.Second, HandshakeTimeout: 8 * time.Second, WriteTimeout: 9 * time.Second,
		ClusterCommands: true, Version: version.Name(),
	}
	rules := s.DefaultCapacity
	if len(rules) != 2 || rules[0] != (server.CapacityRule{Pattern: "job:*", Capacity: 4}) ||
		rules[1] != (server.CapacityRule{Pattern: "a=b", Capacity: 5}) {
		t.Errorf("default capacity: got %+v", rules)
	}
	s.DefaultCapacity = nil
	diff(t, "server", s, wantServer)

	n := c.nodeConfig(nil, nil)
	n.Clock, n.Fatal = cluster.Clock{}, nil
	diff(t, "engine", n, cluster.Config{
		DataDir: "/data", NodeID: "n1", LogStore: "boltdb", Limits: wantServer.Limits,
		Hold: time.Second, WaiterGrace: 2 * time.Second, SnapshotBytes: 1 << 20,
		PeerListen: "127.0.0.1:2", PeerAdvertise: "localhost:2", BootstrapExpect: 3,
		Join:            []string{"n1.example:2", "n2.example:2", "n3.example:2"},
		ElectionTimeout: 150 * time.Millisecond, MaxPeers: 103,
		NodeIDGiven: true, PeerSecurity: peer.Security{Plain: true},
	})
	if c.Addresses != (addressFlags{Listen: "127.0.0.1:1", Unix: "/run/s.sock"}) {
		t.Errorf("addresses: got %+v", c.Addresses)
	}
	if got := c.clientAdvertise(nil); got != "n1.example:1" || !c.Peers.PlainPeers || c.Peers.MaxPeers != 103 {
		t.Errorf("other nodes: got %q, %+v", got, c.Peers)
	}
	if c.Log != (logFlags{Format: "json", Level: "debug"}) || c.Engine.ShutdownTimeout != 3*time.Second || c.Wire.MaxHTTPClients != 11 {
		t.Errorf("log, shutdown and --max-http-clients: got %+v, %v, %d", c.Log, c.Engine.ShutdownTimeout, c.Wire.MaxHTTPClients)
	}
}

func TestEverySettingOfTheFileIsAlsoReadFromTheEnvironment(t *testing.T) {
	inFile := mustParse(t, nil, "--config", file(t, "c.yaml", everyFlag))
	env := map[string]string{}
	s, err := readSettings(strings.NewReader(everyFlag))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range s {
		switch v := value.(type) {
		case string:
			env[envName(name)] = v
		case []string:
			env[envName(name)] = strings.Join(v, " ")
		}
	}

	inEnv := mustParse(t, env)

	inFile.Config = ""
	diff(t, "config", inEnv, inFile)
}

func TestDefaultCapacityIsRepeatableOnTheCommandLine(t *testing.T) {
	c := mustParse(t, nil, "--default-capacity", "a,b*=1", "--default-capacity=c=2")

	got := c.Limits.DefaultCapacity
	if len(got) != 2 || got[0] != (capacityRule{"a,b*", 1}) || got[1] != (capacityRule{"c", 2}) {
		t.Errorf("got %+v, want a,b*=1 and c=2", got)
	}
}

func TestVariablesThatNameNoFlagAreNoted(t *testing.T) {
	ofKubernetes := map[string]string{
		"SEMSERVER_SERVICE_HOST": "10.0.0.1", "SEMSERVER_SERVICE_PORT": "7360", "SEMSERVER_SERVICE_PORT_REDIS": "7360",
		"SEMSERVER_PORT": "tcp://10.0.0.1:7360", "SEMSERVER_PORT_7360_TCP": "tcp://10.0.0.1:7360",
		"SEMSERVER_PORT_7360_TCP_PROTO": "tcp", "SEMSERVER_PORT_7360_TCP_PORT": "7360", "SEMSERVER_PORT_7360_TCP_ADDR": "10.0.0.1",
		"SEMSERVER_METRICS_SERVICE_HOST": "10.0.0.2", "SEMSERVER_METRICS_PORT": "tcp://10.0.0.2:7362",
	}
	for _, c := range []struct {
		env  map[string]string
		want []string
	}{
		{ofKubernetes, nil},
		{map[string]string{"SEMSERVER_MAX_CLIENTS": "5", "PATH": "/bin", "OTHER_SEMSERVER_X": "1"}, nil},
		{map[string]string{"SEMSERVER_MAX_CLIENT": "5", "SEMSERVER_HELP": "1", "SEMSERVER_EXPORT": "1"},
			[]string{"SEMSERVER_EXPORT", "SEMSERVER_HELP", "SEMSERVER_MAX_CLIENT"}},
	} {
		got := mustParse(t, c.env)
		if !slices.Equal(got.unknown, c.want) || got.page != "" {
			t.Errorf("%v: got %q, want %q", c.env, got.unknown, c.want)
		}
	}
}

func TestEnvironmentIsReadAsTheSystemGivesIt(t *testing.T) {
	got := readEnvironment([]string{"A=1", "B=x=y", "C=", "D"})

	want := environment{"A": "1", "B": "x=y", "C": "", "D": ""}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
