package server

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// clientCommands describes CLIENT.
func clientCommands() []*command {
	return []*command{
		{name: "id", summary: "Returns the number of this connection.", run: runClientID},
		{name: "getname", summary: "Returns the name of this connection.", run: runClientGetName},
		{name: "setname", usage: "connection-name", summary: "Names this connection.", run: runClientSetName},
		{name: "setinfo", usage: "attribute value", summary: "Says which library the client uses.", run: runClientSetInfo},
		{name: "info", summary: "Describes this connection.", run: runClientInfo},
		{name: "list", usage: "[TYPE normal] [ID client-id…]", summary: "Describes every connection.", flags: flagAdmin, run: runClientList},
		{name: "kill", usage: "filter…", summary: "Closes connections.", flags: flagAdmin, run: runClientKill},
		{name: "unblock", usage: "client-id [TIMEOUT | ERROR]", summary: "Makes a waiting connection leave the line.", flags: flagAdmin, run: runClientUnblock},
		{name: "no-evict", usage: "switch", summary: "Accepted; nothing is ever evicted.", run: runSwitch},
		{name: "no-touch", usage: "switch", summary: "Accepted; nothing is ever touched.", run: runSwitch},
		{name: "tracking", usage: "switch [option…]", summary: "Accepted; there is nothing to cache.", run: runSwitch},
		{name: "reply", usage: "switch", summary: "Accepts ON alone: every request gets an answer.", run: runClientReply},
	}
}

func runClientID(c *conn, _ [][]byte) error {
	c.out.number(int64(c.id))
	return nil
}

func runClientGetName(c *conn, _ [][]byte) error {
	if name := c.identity().name; name != "" {
		c.out.bulk(name)
	} else {
		c.out.null()
	}
	return nil
}

func runClientSetName(c *conn, args [][]byte) error {
	name, err := clientName(args[2])
	if err != nil {
		c.refuse(err)
		return nil
	}
	c.identify(func(i *identity) { i.name = name })
	c.out.ok()
	return nil
}

func runClientSetInfo(c *conn, args [][]byte) error {
	value, err := clientName(args[3])
	if err != nil {
		c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "%s cannot contain spaces, newlines or special characters.", printable(args[2])))
		return nil
	}
	switch strings.ToLower(string(args[2])) {
	case "lib-name":
		c.identify(func(i *identity) { i.libName = value })
	case "lib-ver":
		c.identify(func(i *identity) { i.libVersion = value })
	default:
		c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "Unrecognized option '%s'", printable(args[2])))
		return nil
	}
	c.out.ok()
	return nil
}

func runClientInfo(c *conn, _ [][]byte) error {
	c.out.verbatim(c.describe() + "\n")
	return nil
}

// describe is this connection as a line of CLIENT LIST. It may be called from any goroutine.
func (c *conn) describe() string {
	i, now, flag, last := c.identity(), time.Now(), "N", ""
	if c.waiting.Load() != nil {
		flag = "b"
	}
	if cmd := c.last.Load(); cmd != nil {
		last = cmd.name
	}
	idle := max(0, now.UnixMilli()-c.spoke.Load()) / 1000
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=%s db=%d cmd=%s user=default lib-name=%s lib-ver=%s resp=%d",
		c.id, c.remote, c.local, i.name, int(now.Sub(c.born).Seconds()), idle, flag, i.db, last, i.libName, i.libVersion, i.proto)
}

func runClientList(c *conn, args [][]byte) error {
	keep, err := parseClientList(args[2:])
	if err != nil {
		c.refuse(err)
		return nil
	}
	all := slices.DeleteFunc(c.server.clients(), func(o *conn) bool { return !keep(o) })
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	var text strings.Builder
	for _, other := range all {
		text.WriteString(other.describe())
		text.WriteByte('\n')
	}
	c.out.verbatim(text.String())
	return nil
}

// parseClientList reads which connections are wanted.
func parseClientList(args [][]byte) (func(*conn) bool, *semaphore.Error) {
	keep := func(*conn) bool { return true }
	if len(args) == 0 {
		return keep, nil
	}
	switch word := strings.ToUpper(string(args[0])); {
	case word == "TYPE" && len(args) == 2:
		return byType(args[1])
	case word == "ID" && len(args) > 1:
		ids := map[uint64]bool{}
		for _, a := range args[1:] {
			id, ok := digits(a)
			if !ok {
				return nil, refusal("Invalid client ID")
			}
			ids[id] = true
		}
		return func(c *conn) bool { return ids[c.id] }, nil
	}
	return nil, errSyntax
}

func byType(kind []byte) (func(*conn) bool, *semaphore.Error) {
	switch strings.ToLower(string(kind)) {
	case "normal":
		return func(*conn) bool { return true }, nil
	case "master", "replica", "slave", "pubsub":
		return func(*conn) bool { return false }, nil
	}
	return nil, semaphore.Errorf(semaphore.CodeInvalid, "Unknown client type '%s'", printable(kind))
}

func runClientKill(c *conn, args [][]byte) error {
	if len(args) == 3 {
		return c.killAddress(string(args[2]))
	}
	match, skipMe, err := parseKill(args[2:])
	if err != nil {
		c.refuse(err)
		return nil
	}
	killed, self := int64(0), false
	for _, other := range c.server.clients() {
		if !match(other) || (other == c && skipMe) {
			continue
		}
		killed++
		if self = self || other == c; other != c {
			other.cut()
		}
	}
	c.out.number(killed)
	if self {
		return errQuit
	}
	return nil
}

// killAddress is the old form, which says OK or that there is no such client.
func (c *conn) killAddress(address string) error {
	for _, other := range c.server.clients() {
		if other.remote != address {
			continue
		}
		c.out.ok()
		if other == c {
			return errQuit
		}
		other.cut()
		return nil
	}
	c.refuse(refusal("No such client"))
	return nil
}

// parseKill reads filters, all of which must match.
func parseKill(args [][]byte) (match func(*conn) bool, skipMe bool, err *semaphore.Error) {
	match, skipMe = func(*conn) bool { return true }, true
	if len(args)%2 != 0 {
		return nil, false, errSyntax
	}
	for ; len(args) > 0; args = args[2:] {
		value, also, before := string(args[1]), (func(*conn) bool)(nil), match
		switch strings.ToUpper(string(args[0])) {
		case "ID":
			id, ok := digits(args[1])
			if !ok || id == 0 {
				return nil, false, refusal("client-id should be greater than 0")
			}
			also = func(c *conn) bool { return c.id == id }
		case "ADDR":
			also = func(c *conn) bool { return c.remote == value }
		case "LADDR":
			also = func(c *conn) bool { return c.local == value }
		case "USER":
			also = func(*conn) bool { return value == "default" }
		case "TYPE":
			if also, err = byType(args[1]); err != nil {
				return nil, false, err
			}
		case "MAXAGE":
			age, ok := digits(args[1])
			if !ok {
				return nil, false, errSyntax
			}
			also = func(c *conn) bool { return time.Since(c.born).Seconds() >= float64(age) }
		case "SKIPME":
			if skipMe = strings.EqualFold(value, "yes"); !skipMe && !strings.EqualFold(value, "no") {
				return nil, false, errSyntax
			}
			continue
		default:
			return nil, false, errSyntax
		}
		match = func(c *conn) bool { return before(c) && also(c) }
	}
	return match, skipMe, nil
}

func runClientUnblock(c *conn, args [][]byte) error {
	if len(args) > 4 {
		c.refuse(errWrongNumber("client|unblock"))
		return nil
	}
	id, ok := digits(args[2])
	if !ok {
		c.refuse(refusal("value is not an integer or out of range"))
		return nil
	}
	var instead semaphore.Reply
	if len(args) == 4 {
		switch {
		case bytes.EqualFold(args[3], []byte("ERROR")):
			instead.Err = semaphore.ErrUnblocked
		case !bytes.EqualFold(args[3], []byte("TIMEOUT")):
			c.refuse(refusal("CLIENT UNBLOCK reason should be TIMEOUT or ERROR"))
			return nil
		}
	}
	other := c.server.client(id)
	w := (*wait)(nil)
	if other != nil {
		w = other.waiting.Load()
	}
	c.out.number(truth(w != nil && w.interrupt(instead)))
	return nil
}

// runSwitch accepts ON and OFF for something that makes no difference here.
func runSwitch(c *conn, args [][]byte) error {
	if !bytes.EqualFold(args[2], []byte("ON")) && !bytes.EqualFold(args[2], []byte("OFF")) {
		c.refuse(errSyntax)
		return nil
	}
	c.out.ok()
	return nil
}

func runClientReply(c *conn, args [][]byte) error {
	if !bytes.EqualFold(args[2], []byte("ON")) {
		c.refuse(refusal("CLIENT REPLY accepts only ON: every request gets an answer"))
		return nil
	}
	c.out.ok()
	return nil
}
