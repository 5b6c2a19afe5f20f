package server

import (
	"strings"
	"testing"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/semaphore"
)

func secret(c *Config) { c.Password = "sesame" }

func TestNothingIsServedBeforeAuthentication(t *testing.T) {
	c := start(t, secret).dial(t)
	for _, cmd := range []string{"PING", "SEM.CREATE k 1", "NOSUCH", "MULTI", "SUBSCRIBE x", "COMMAND", "INFO"} {
		c.send(cmd).want("-NOAUTH Authentication required.\r\n")
	}
	c.send("AUTH wrong").want("-WRONGPASS invalid username-password pair or user is disabled.\r\n")
	c.send("AUTH other sesame").want("-WRONGPASS invalid username-password pair or user is disabled.\r\n")
	c.send("AUTH a b c").want("-ERR syntax error\r\n")
	c.send("PING").want("-NOAUTH Authentication required.\r\n")
	c.send("AUTH sesame").want("+OK\r\n")
	c.send("PING").want("+PONG\r\n")
	c.send("RESET").want("+RESET\r\n")
	c.send("PING").want("-NOAUTH Authentication required.\r\n")
	c.send("AUTH default sesame").want("+OK\r\n")
	c.send("QUIT").want("+OK\r\n")
	c.ended()
}

func TestHelloDoesAllOrNothing(t *testing.T) {
	c := start(t, secret).dial(t)
	if got := c.do("HELLO 3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called with the client already authenticated") {
		t.Errorf("got %q", got)
	}
	c.send("HELLO 3 AUTH default wrong SETNAME me").want("-WRONGPASS invalid username-password pair or user is disabled.\r\n")
	c.send("HELLO 3 SETNAME me AUTH default sesame NONSENSE").want("-ERR Syntax error in HELLO option 'NONSENSE'\r\n")
	c.send("HELLO 4 AUTH default sesame").want("-NOPROTO unsupported protocol version\r\n")
	c.send("PING").want("-NOAUTH Authentication required.\r\n")
	c.send("AUTH sesame").want("+OK\r\n")
	c.send("CLIENT GETNAME").want("$-1\r\n")
	if got := c.do("HELLO 3 AUTH default sesame SETNAME me"); !strings.HasPrefix(got, "%7\r\n$6\r\nserver\r\n$9\r\nsemserver\r\n$7\r\nversion\r\n$5\r\n7.4.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:") {
		t.Errorf("got %q", got)
	}
	c.send("CLIENT GETNAME").want("$2\r\nme\r\n")
	if got := c.do("HELLO 2"); !strings.HasPrefix(got, "*14\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestHelloAuthenticatesAtOnce(t *testing.T) {
	c := start(t, secret).dial(t)
	c.raw(request("HELLO", "3", "AUTH", "default", "sesame") + request("PING"))
	if got := c.reply(); !strings.HasSuffix(got, "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n") {
		t.Errorf("got %q", got)
	}
	c.want("+PONG\r\n")
}

func TestLimitsAreStricterUntilTheClientHasAuthenticated(t *testing.T) {
	r := start(t, secret)
	c := r.dial(t).raw("*11\r\n")
	if got, want := c.ended(), "-ERR Protocol error: unauthenticated multibulk length\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c = r.dial(t)
	c.send("AUTH sesame").want("+OK\r\n")
	c.send("ECHO", strings.Repeat("x", 20<<10)).want("$20480\r\n")
}

// TestHandshakes sends what each client library sends when it connects. None of it may fail, except
// where the libraries expect it.
func TestHandshakes(t *testing.T) {
	for name, script := range map[string][]string{
		"go-redis":            {"hello 3", "select 0", "readonly", "client setname n", "client maint_notifications on moving-endpoint-type internal-ip", "client setinfo LIB-NAME go-redis(,go1.26.8)", "client setinfo LIB-VER 9.23.0"},
		"rueidis":             {"HELLO 3", "CLIENT TRACKING ON OPTIN", "CLIENT SETINFO LIB-NAME rueidis", "CLIENT SETINFO LIB-VER 1.0.79", "CLUSTER SLOTS", "PING"},
		"redis-py":            {"HELLO 3", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-fqdn", "CLIENT SETNAME n", "CLIENT SETINFO LIB-NAME redis-py", "CLIENT SETINFO LIB-VER 8.0.0", "SELECT 0"},
		"ioredis":             {"hello 3", "select 0", "client setname n", "client SETINFO LIB-VER 6.0.0", "client SETINFO LIB-NAME ioredis", "info"},
		"StackExchange.Redis": {"HELLO 3", "CLIENT SETNAME n", "CLIENT SETINFO lib-name SE.Redis", "CLIENT SETINFO lib-ver 3.1.31", "CLIENT ID", "CONFIG GET timeout", "CONFIG GET replica-read-only", "CONFIG GET databases", "SENTINEL MASTERS", "INFO replication", "INFO server", "CLUSTER NODES", "GET __Booksleeve_TieBreak", "ECHO \x01\x02\xff\xfe56789012345678"},
		"redis-cli":           {"COMMAND DOCS", "COMMAND", "CONFIG GET save", "CONFIG GET appendonly"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t).dial(t)
			for _, cmd := range script {
				refused := strings.HasPrefix(c.do(cmd), "-")
				words := strings.ToUpper(cmd)
				expected := strings.Contains(words, "MAINT_NOT") || strings.HasPrefix(words, "CLUSTER") || strings.HasPrefix(words, "SENTINEL") || strings.HasPrefix(words, "GET")
				if refused != expected {
					t.Errorf("%s: refused %v, want %v", cmd, refused, expected)
				}
			}
		})
	}
}

func TestInfoHasWhatClientsReadInIt(t *testing.T) {
	r := start(t, func(c *Config) {
		c.Version = "9.9"
		c.Report = func() []Section { return []Section{{"Raft", []Field{{"raft_role", "leader"}}}} }
	})
	c := r.dial(t)
	all := c.do("INFO")
	for _, want := range []string{"# Server\r\nredis_version:7.4.0\r\n", "semserver_version:9.9\r\n", "redis_mode:standalone\r\n", "role:master\r\n", "loading:0\r\n", "# Semaphores\r\n", "# Raft\r\nraft_role:leader\r\n", "connected_clients:1\r\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("INFO lacks %q", want)
		}
	}
	if !strings.Contains(all, "semserver_ready:1\r\n") {
		t.Error("INFO lacks that the server can decide")
	}
	c.send("INFO raft").want("$26\r\n# Raft\r\nraft_role:leader\r\n\r\n")
	c.send("INFO nosuch").want("$0\r\n\r\n")
}

func TestInfoSaysThatTheBackendCannotDecide(t *testing.T) {
	r := start(t, func(c *Config) { c.Ready = func() error { return semaphore.ErrDown } })
	if got := r.dial(t).do("INFO server"); !strings.Contains(got, "\r\nsemserver_ready:0\r\n") {
		t.Errorf("got %q, want that it is not ready", got)
	}
}

func TestLabelIsNameAndAddress(t *testing.T) {
	r, a := full(t)
	a.send("CLIENT SETNAME me").want("+OK\r\n")
	a.send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	want := "me " + a.LocalAddr().String()
	if got := r.dial(t).do("SEM.WAITERS k"); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func TestClientList(t *testing.T) {
	r, a := full(t)
	b := r.dial(t)
	b.send("CLIENT SETNAME me").want("+OK\r\n")
	b.send("SEM.ACQUIRE k HOLDER b WAIT 60000")
	r.waits(t, "k", 1, 1)
	list := a.do("CLIENT LIST")
	want := "addr=" + b.LocalAddr().String() + " laddr=" + r.addr + " name=me "
	if !strings.Contains(list, want) || !strings.Contains(list, " flags=b db=0 cmd=sem.acquire ") {
		t.Errorf("got %q, want %q in it, blocked", list, want)
	}
	if got := strings.Count(list, "id="); got != 2 {
		t.Errorf("%d clients listed, want 2", got)
	}
	if got := a.do("CLIENT LIST TYPE replica"); got != "$0\r\n\r\n" {
		t.Errorf("got %q, want nothing", got)
	}
	a.send("CLIENT KILL ADDR " + b.LocalAddr().String() + " SKIPME yes").want(":1\r\n")
	b.ended()
	trial.Until(t, "b is gone", func() bool { return len(r.clients()) == 1 })
	a.send("CLIENT KILL TYPE normal").want(":0\r\n")
	a.send("CLIENT KILL " + a.LocalAddr().String()).want("+OK\r\n")
	a.ended()
}
