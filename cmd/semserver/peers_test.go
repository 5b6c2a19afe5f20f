package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBadClusterIsRefusedByName(t *testing.T) {
	full := filepath.Dir(file(t, "wal", "x"))
	state, empty := file(t, "state.bin", "x"), t.TempDir()
	for _, c := range []struct {
		args string
		want string // in the message
	}{
		{"--peer-listen=7361", `--peer-listen: "7361" is not host:port`},
		{"--peer-listen=127.0.0.1:65536", "the port is not a number"},
		{"--peer-listen=:7361 --plain-peers", "--peer-listen :7361 names every interface: give"},
		{"--peer-listen=0.0.0.0:7361 --plain-peers", "--peer-listen 0.0.0.0:7361 names every interface: give"},
		{"--peer-listen=[::]:7361 --plain-peers", "as --peer-advertise"},
		{"--listen=127.0.0.1:1 --peer-listen=127.0.0.1:1", "--listen and --peer-listen are both 127.0.0.1:1"},
		{"--http=127.0.0.1:7361 --bootstrap-expect=1", "--http and --peer-listen are both 127.0.0.1:7361"},
		{"--peer-advertise=node", `--peer-advertise: "node" is not host:port`},
		{"--peer-advertise=0.0.0.0:7361 --plain-peers", "--peer-advertise: nobody can connect to"},
		{"--peer-advertise=node:0 --plain-peers", `--peer-advertise: nobody can connect to "node:0": the port is 0`},
		{"--client-advertise=[::]:7360", "--client-advertise: nobody can connect to"},
		{"--client-advertise=:7360", "--client-advertise: nobody can connect to"},
		{"--client-advertise=node:x", "--client-advertise"},
		{"--join=node", `--join: "node" is not host:port`},
		{"--join=a:1,,b:1", `--join: "no address" is not host:port`},
		{"--join=", `--join: "no address" is not host:port`},
		{"--join=a:1 --join=:2", `--join: nobody can connect to ":2"`},
		{"--join=0.0.0.0:7361", "--join: nobody can connect to"},
		{"--join=a:0", "--join: nobody can connect to"},
		{"--bootstrap-expect=-1", "--bootstrap-expect: -1 is not within 0 … 15"},
		{"--bootstrap-expect=16", "--bootstrap-expect: 16 is not within 0 … 15"},
		{"--bootstrap-expect=3", "--bootstrap-expect 3 needs --join"},
		{"--bootstrap-expect=three", "--bootstrap-expect"},
		{"--election-timeout=99ms", "--election-timeout: 99ms is not within 100ms"},
		{"--election-timeout=1h", "--election-timeout: 1h0m0s is not within"},
		{"--max-peers=1", "--max-peers: 1 is not within 16"},
		{"--cluster-commands=perhaps", "--cluster-commands"},
		{"--restore=" + state + " --join=a:1 --data-dir=" + empty, "--restore begins a cluster of one"},
		{"--restore=" + state + " --bootstrap-expect=3 --data-dir=" + empty, "--restore begins a cluster of one"},
		{"--restore=" + state + " --recover-single --data-dir=" + empty, "give one of them"},
		{"--restore=/nowhere/at-all --data-dir=" + empty, "--restore: open /nowhere/at-all"},
		{"--restore=" + empty + " --data-dir=" + empty, "--restore: " + empty + " is not a file"},
		{"--recover-single --join=a:1 --data-dir=" + full, "--recover-single makes a cluster of one"},
		{"--recover-single --bootstrap-expect=1 --data-dir=" + full, "--recover-single makes a cluster of one"},
	} {
		t.Run(fmt.Sprintf("%.80s", c.args), func(t *testing.T) {
			_, err := parse(strings.Fields(c.args), environment(nil))

			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestGoodClusterIsAccepted(t *testing.T) {
	full := filepath.Dir(file(t, "wal", "x"))
	state, fresh := file(t, "state.bin", "x"), t.TempDir()
	if err := os.Mkdir(filepath.Join(fresh, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"--bootstrap-expect=1",
		"--bootstrap-expect=3 --join=localhost:7361",
		"--peer-listen=127.0.0.1:0",
		"--peer-listen=[::1]:7361 --peer-advertise=localhost:7361",
		"--peer-listen=:7361 --peer-advertise=node:7361 --plain-peers",
		"--restore=" + state + " --data-dir=" + filepath.Join(fresh, "data"),
		"--restore=" + state + " --bootstrap-expect=1 --data-dir=" + fresh,
		"--recover-single --data-dir=" + full,
	} {
		mustParse(t, nil, strings.Fields(args)...)
	}
}

func TestNodeListensForOthersOnlyInACluster(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "",
		"--peer-advertise=localhost:7361": "",
		"--bootstrap-expect=1":            defaultPeerListen,
		"--join=n1:7361":                  defaultPeerListen,
		"--peer-listen=127.0.0.1:1":       "127.0.0.1:1",
		"--peer-listen=127.0.0.1:1 --join=n1:7361,n:1": "127.0.0.1:1",
	} {
		n := mustParse(t, nil, strings.Fields(args)...).nodeConfig(nil, nil)

		if n.PeerListen != want {
			t.Errorf("%q: got %q, want %q", args, n.PeerListen, want)
		}
	}
}

func TestNodesToJoinAreRepeatableAndSeparatedByCommas(t *testing.T) {
	want := []string{"a:1", "b:2", "c:3", "d:4"}
	inFile := file(t, "c.yaml", "join:\n  - a:1, b:2\n  - c:3\n  - d:4\n")
	inFileAsOne := file(t, "d.yaml", "join: a:1,b:2,c:3,d:4\n")
	for _, c := range []struct {
		env  map[string]string
		args []string
	}{
		{nil, []string{"--join", "a:1,b:2", "--join=c:3,d:4"}},
		{map[string]string{"SEMSERVER_JOIN": "a:1,b:2 c:3,d:4"}, nil},
		{nil, []string{"--config", inFile}},
		{nil, []string{"--config", inFileAsOne}},
	} {
		if got := mustParse(t, c.env, c.args...).Peers.Join; !slices.Equal(got, want) {
			t.Errorf("%v %q: got %q, want %q", c.env, c.args, got, want)
		}
	}
}

func TestClientsAreToldWhereTheNodeCanBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, c := range []struct{ args, want string }{
		{"--listen=127.0.0.1:0", "127.0.0.1:" + port},
		{"--listen=node:7360", "node:" + port},
		{"--listen=0.0.0.0:7360", "0.0.0.0:" + port},
		{"--listen=:7360 --peer-listen=127.0.0.1:1", "127.0.0.1:" + port},
		{"--listen=:7360 --peer-listen=:1 --peer-advertise=n1:1 --plain-peers", "n1:" + port},
		{"--listen=[::]:7360 --peer-listen=[::]:1 --peer-advertise=[::1]:1 --plain-peers", "[::1]:" + port},
		{"--listen=10.0.0.1:7360 --peer-advertise=n1:1 --plain-peers", "10.0.0.1:" + port},
		{"--listen=:7360 --client-advertise=outside:1", "outside:1"},
	} {
		if got := mustParse(t, nil, strings.Fields(c.args)...).clientAdvertise(l); got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
	if got := mustParse(t, nil, "--listen=", "--unix=/s").clientAdvertise(nil); got != "" {
		t.Errorf("unix socket alone: got %q, want none", got)
	}
}
