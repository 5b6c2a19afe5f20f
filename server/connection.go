package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// maxClientName is the longest name that a client may give itself or its library. With its address
// it makes the label of its grants.
const maxClientName = 256

// connectionCommands describes the commands about the connection itself.
func connectionCommands() []*command {
	all := []*command{
		{name: "auth", usage: "[username] password", flags: flagNoAuth | flagFast | flagNoMulti, run: runAuth,
			summary: "Authenticates the connection."},
		{name: "hello", usage: "[protover [AUTH username password] [SETNAME clientname]]", flags: flagNoAuth | flagFast | flagNoMulti, run: runHello,
			summary: "Handshakes with the server."},
		{name: "ping", usage: "[message]", flags: flagFast | flagSubscribed, run: runPing, summary: "Returns PONG, or the message."},
		{name: "echo", usage: "message", flags: flagFast, run: runEcho, summary: "Returns the message."},
		{name: "quit", flags: flagNoAuth | flagFast | flagSubscribed | flagNoQueue, run: runQuit, summary: "Closes the connection."},
		{name: "reset", flags: flagNoAuth | flagFast | flagSubscribed | flagNoQueue, run: runReset, summary: "Makes the connection as it was when it was new."},
		{name: "select", usage: "index", flags: flagFast, run: runSelect, summary: "Chooses a database; all of them show the same semaphores."},
		{name: "client", summary: "Commands about connections.", subs: clientCommands()},
	}
	for _, c := range all {
		c.group = "connection"
	}
	return all
}

// reset makes the connection as it was when it was new.
func (c *conn) reset() {
	c.multi = nil
	c.channels = subscriptions{}
	c.out.proto = 2
	c.in.anon = c.server.cfg.Password != ""
	c.identify(func(i *identity) { *i = identity{proto: 2} })
}

// identify changes what others see of this client.
func (c *conn) identify(change func(*identity)) {
	c.mu.Lock()
	change(&c.shown)
	name := c.shown.name
	c.mu.Unlock()
	c.rules.label = strings.TrimSpace(name + " " + c.remote)
}

// identity returns what others see of this client.
func (c *conn) identity() identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

func runAuth(c *conn, args [][]byte) error {
	if len(args) > 3 {
		c.refuse(errSyntax)
		return nil
	}
	user := []byte("default")
	if len(args) == 3 {
		user = args[1]
	} else if c.server.cfg.Password == "" {
		c.refuse(errNoPassword)
		return nil
	}
	if !c.server.knows(user, args[len(args)-1]) {
		c.refuse(errWrongPass)
		return nil
	}
	c.in.anon = false
	c.out.ok()
	return nil
}

// knows checks a password in a time that does not depend on it. There is one user, as in a Redis
// without ACLs, and without a password every one of its is right.
func (s *Server) knows(user, password []byte) bool {
	want, got := sha256.Sum256([]byte(s.cfg.Password)), sha256.Sum256(password)
	same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	return string(user) == "default" && (same || s.cfg.Password == "")
}

// runHello does all that HELLO asks for, or nothing.
func runHello(c *conn, args [][]byte) error {
	h, err := parseHello(args[1:])
	if err == nil && h.proto == 0 {
		h.proto = c.out.proto
	}
	switch {
	case err != nil:
	case h.user != nil && !c.server.knows(h.user, h.password):
		err = errWrongPass
	case h.user == nil && c.in.anon:
		err = errHelloNoAuth
	}
	if err != nil {
		c.refuse(err)
		return nil
	}
	c.in.anon = false
	c.out.proto = h.proto
	c.identify(func(i *identity) {
		i.proto = h.proto
		if h.named {
			i.name = h.name
		}
	})
	c.greet()
	return nil
}

// greet answers HELLO.
func (c *conn) greet() {
	c.out.mapping(7)
	c.out.bulk("server")
	c.out.bulk("semserver")
	c.out.bulk("version")
	c.out.bulk(redisVersion)
	c.out.bulk("proto")
	c.out.number(int64(c.out.proto))
	c.out.bulk("id")
	c.out.number(int64(c.id))
	c.out.bulk("mode")
	c.out.bulk(c.server.mode())
	c.out.bulk("role")
	c.out.bulk("master")
	c.out.bulk("modules")
	c.out.array(0)
}

// hello is what a HELLO asks for.
type hello struct {
	proto          int // 0: stay
	user, password []byte
	named          bool
	name           string
}

func parseHello(args [][]byte) (hello, *semaphore.Error) {
	var h hello
	if len(args) == 0 {
		return h, nil
	}
	v, ok := digits(args[0])
	if !ok {
		return h, refusal("Protocol version is not an integer or out of range")
	}
	if v != 2 && v != 3 {
		return h, errNoProto
	}
	h.proto = int(v)
	for rest := args[1:]; len(rest) > 0; {
		word := strings.ToUpper(string(rest[0]))
		switch {
		case word == "AUTH" && len(rest) > 2:
			h.user, h.password = rest[1], rest[2]
			rest = rest[3:]
		case word == "SETNAME" && len(rest) > 1:
			name, err := clientName(rest[1])
			if err != nil {
				return h, err
			}
			h.named, h.name = true, name
			rest = rest[2:]
		default:
			return h, semaphore.Errorf(semaphore.CodeInvalid, "Syntax error in HELLO option '%s'", printable(rest[0]))
		}
	}
	return h, nil
}

// clientName checks a name that will be shown in lists, where blanks separate.
func clientName(name []byte) (string, *semaphore.Error) {
	for _, b := range name {
		if b < '!' || b > '~' {
			return "", refusal("Client names cannot contain spaces, newlines or special characters.")
		}
	}
	if len(name) > maxClientName {
		return "", semaphore.Errorf(semaphore.CodeInvalid, "Client names cannot be longer than %d bytes.", maxClientName)
	}
	return string(name), nil
}

func runPing(c *conn, args [][]byte) error {
	switch {
	case len(args) > 2:
		c.refuse(errWrongNumber("ping"))
	case c.channels.confined(c.out.proto):
		c.out.array(2)
		c.out.bulk("pong")
		c.out.bytes(bytesAt(args, 1))
	case len(args) > 1:
		c.out.bytes(args[1])
	default:
		c.out.status("PONG")
	}
	return nil
}

// bytesAt returns an argument that may be missing.
func bytesAt(args [][]byte, i int) []byte {
	if i < len(args) {
		return args[i]
	}
	return nil
}

func runEcho(c *conn, args [][]byte) error {
	c.out.bytes(args[1])
	return nil
}

func runQuit(c *conn, _ [][]byte) error {
	c.out.ok()
	return errQuit
}

func runReset(c *conn, _ [][]byte) error {
	c.reset()
	c.out.status("RESET")
	return nil
}

func runSelect(c *conn, args [][]byte) error {
	n, ok := digits(args[1])
	switch {
	case !ok:
		c.refuse(refusal("value is not an integer or out of range"))
	case n >= databases:
		c.refuse(errDBRange)
	default:
		c.identify(func(i *identity) { i.db = int(n) })
		c.out.ok()
	}
	return nil
}
