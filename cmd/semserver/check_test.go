package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// diff reports the difference between two values that print all that is in them.
func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func TestBadConfigurationIsRefusedByName(t *testing.T) {
	empty, long := file(t, "empty", "\nsecond\n"), file(t, "long", strings.Repeat("x", maxPassword+1))
	for _, c := range []struct {
		args string
		want string // in the message
	}{
		{"--no-such-flag", "--no-such-flag"},
		{"stray", "unexpected argument stray"},
		{"--max-clients", "--max-clients"},
		{"--max-clients=many", "--max-clients"},
		{"--max-clients=0", "--max-clients: 0 is not within 1"},
		{"--max-clients=-5", "--max-clients: -5"},
		{"--max-clients -1", "--max-clients: -1 is not within 1 … 1073741824"},
		{"--hold -1s", "--hold: -1s is not within"},
		{"-1", "-1"},
		{"--max-clients=99999999999999999999", "--max-clients"},
		{"--max-http-clients=0", "--max-http-clients: 0 is not within 1"},
		{"--max-clients=10 --max-clients-per-address=11", "--max-clients-per-address 11 is more than --max-clients 10"},
		{"--max-inline=20000 --max-command=10000", "--max-inline 20000 is more than --max-command 10000"},
		{"--max-command=1", "--max-command"},
		{"--max-arguments=3", "--max-arguments"},
		{"--max-anonymous-arguments=1", "--max-anonymous-arguments"},
		{"--listen=7360", `--listen: "7360" is not host:port`},
		{"--listen=127.0.0.1:http", "the port is not a number"},
		{"--listen=127.0.0.1:65536", "the port is not a number"},
		{"--listen=127.0.0.1:1 --http=127.0.0.1:1", "--listen and --http are both 127.0.0.1:1"},
		{"--listen=", "--listen and --unix are both empty"},
		{"--http=x", "--http"},
		{"--data-dir=", "--data-dir is empty"},
		{"--log-store=tape", "--log-store"},
		{"--log-format=xml", "--log-format"},
		{"--log-level=loud", "--log-level"},
		{"--protected-mode=maybe", "--protected-mode"},
		{"--hold=5", "--hold"},
		{"--hold=0s", "--hold: 0s is not within"},
		{"--waiter-grace=-1s", "--waiter-grace"},
		{"--shutdown-timeout=2h", "--shutdown-timeout"},
		{"--snapshot-bytes=1", "--snapshot-bytes"},
		{"--max-lease=10s", "--default-lease 30s is longer than --max-lease 10s"},
		{"--default-lease=0s", "--default-lease: 0s"},
		{"--default-idle=0s", "--default-idle: 0s"},
		{"--max-wait=999999h --max-lease=999999h", "--max-wait"},
		{"--max-waiters=11 --max-waiters-all=10", "--max-waiters 11 is more than --max-waiters-all 10"},
		{"--default-capacity=job", `"job" is not PATTERN=N`},
		{"--default-capacity==4", `"=4" is not PATTERN=N`},
		{"--default-capacity -4", `"-4" is not PATTERN=N`},
		{"--default-capacity=job=x", "the capacity is not a whole number"},
		{"--default-capacity=job=", "the capacity is not a whole number"},
		{"--default-capacity=[=1", `the pattern "[": a [ is not closed by a ]`},
		{"--default-capacity=a[b=1", "a [ is not closed by a ]"},
		{"--default-capacity=a[b-]=1", "a [ is not closed by a ]"},
		{`--default-capacity=a[b\]=1`, "a [ is not closed by a ]"},
		{`--default-capacity=a[b\=1`, "a [ is not closed by a ]"},
		{`--default-capacity=a\=1`, `nothing follows the last \`},
		{"--default-capacity=" + strings.Repeat("x", 1025) + "=1", "a pattern is longer than 1024 bytes"},
		{"--default-capacity=job=-1", "-1 is not within"},
		{"--default-capacity=job=9007199254740992", "9007199254740992 is not within"},
		{"--default-capacity=j*=1 --default-capacity=j*=2", `the pattern "j*" is given twice`},
		{"--node-id=" + strings.Repeat("x", 1025), "--node-id is longer"},
		{"--password-file=/nowhere/at-all", "--password-file"},
		{"--password-file=" + empty, "the first line is empty"},
		{"--password-file=" + long, "--password-file"},
		{"--config=/nowhere/at-all", "--config"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.args), func(t *testing.T) {
			_, err := parse(strings.Fields(c.args), environment(nil))

			if err == nil {
				t.Fatalf("got no error, want one with %q", c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want it to contain %q", err, c.want)
			}
		})
	}
}

func TestBadVariableIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"SEMSERVER_JOIN", "a:1,b", `--join: "b" is not host:port`},
		{"SEMSERVER_JOIN", "a:1 b", `--join: "b" is not host:port`},
		{"SEMSERVER_PLAIN_PEERS", "maybe", "--plain-peers"},
		{"SEMSERVER_HOLD", "soon", `--hold: "soon" is no duration`},
		{"SEMSERVER_HOLD", "5", "--hold: 5: a duration needs a unit, such as 5s"},
		{"SEMSERVER_MAX_CLIENTS", "-1", "--max-clients: -1 is not within"},
		{"SEMSERVER_DEFAULT_CAPACITY", "a=1 b=x", `--default-capacity: "b=x": the capacity is not a whole number`},
		{"SEMSERVER_DEFAULT_CAPACITY", "a=1 b", `--default-capacity: "b" is not PATTERN=N`},
	} {
		_, err := parse(nil, environment{c.name: c.value})

		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s=%s: got %v, want an error that begins with %q", c.name, c.value, err, c.want)
		}
	}
}

func TestWellFormedPatternsAreAccepted(t *testing.T) {
	for _, pattern := range []string{"*", "a?b", "[abc]", "[^a-z]", `\[`, `[\]]`, "a]", "[a-]]", strings.Repeat("x", 1024)} {
		mustParse(t, nil, "--default-capacity", pattern+"=1")
	}
}

func TestBadFileIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"max-client: 5\n", `unknown setting "max-client"`},
		{"help: true\n", `unknown setting "help"`},
		{"config: other.yaml\n", `unknown setting "config"`},
		{"max-clients: [1, 2]\n", "one value is needed"},
		{"max-clients: {a: 1}\n", "line 1: max-clients: a plain value"},
		{"max-clients:\n", "line 1: max-clients: a plain value"},
		{"hold: soon\n", "--hold"},
		{"- hold\n", "cannot unmarshal"},
		{"hold: 1s\nhold: 2s\n", "already defined"},
		{"\tx", "yaml"},
		{"default-capacity: [[a=1]]\n", "plain values"},
		{"default-capacity: [a]\n", "PATTERN=N"},
		{"#" + strings.Repeat("x", maxFile), "larger than"},
	} {
		t.Run(fmt.Sprintf("%.30q", c.text), func(t *testing.T) {
			_, err := parse([]string{"--config", file(t, "c.yaml", c.text)}, environment(nil))

			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestJSONFileIsRead(t *testing.T) {
	c := mustParse(t, nil, "--config", file(t, "c.json", `{"max-clients": 7, "default-capacity": ["a=1"], "listen": ":1"}`))

	if c.Wire.MaxClients != 7 || len(c.Limits.DefaultCapacity) != 1 || c.Addresses.Listen != ":1" {
		t.Errorf("got %+v", c.flags)
	}
}
