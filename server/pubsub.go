package server

import (
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// Nothing is ever published here. Subscriptions are accepted because clients open them in passing,
// and count right because clients wait for the number.

// pubsubCommands describes the SUBSCRIBE family.
func pubsubCommands() []*command {
	all := []*command{
		{name: "subscribe", usage: "channel…", run: runSubscribe, summary: "Accepted; nothing is ever published."},
		{name: "unsubscribe", usage: "[channel…]", run: runUnsubscribe, summary: "Ends subscriptions."},
		{name: "psubscribe", usage: "pattern…", run: runSubscribe, summary: "Accepted; nothing is ever published."},
		{name: "punsubscribe", usage: "[pattern…]", run: runUnsubscribe, summary: "Ends subscriptions to patterns."},
		{name: "ssubscribe", usage: "channel…", run: runSubscribe, summary: "Accepted; nothing is ever published."},
		{name: "sunsubscribe", usage: "[channel…]", run: runUnsubscribe, summary: "Ends subscriptions to shard channels."},
	}
	for _, c := range all {
		c.group, c.flags = "pubsub", flagPubsub|flagSubscribed|flagNoMulti
	}
	return all
}

// subscriptions are the channels of one connection, in the order of subscribing, by family: "",
// "p" or "s".
type subscriptions struct {
	names map[string][]string
}

// confined reports whether nothing but subscribing is allowed: in RESP2, messages and replies look
// the same.
func (s *subscriptions) confined(proto int) bool { return proto == 2 && s.total() > 0 }

func (s *subscriptions) total() int {
	n := 0
	for _, names := range s.names {
		n += len(names)
	}
	return n
}

// count is the number that replies carry: shard channels are counted by themselves.
func (s *subscriptions) count(family string) int64 {
	if family == "s" {
		return int64(len(s.names["s"]))
	}
	return int64(len(s.names[""]) + len(s.names["p"]))
}

func (s *subscriptions) add(family, name string) {
	if s.names == nil {
		s.names = map[string][]string{}
	}
	for _, n := range s.names[family] {
		if n == name {
			return
		}
	}
	s.names[family] = append(s.names[family], name)
}

func (s *subscriptions) remove(family, name string) {
	for i, n := range s.names[family] {
		if n == name {
			s.names[family] = append(s.names[family][:i:i], s.names[family][i+1:]...)
			return
		}
	}
}

// subscribing splits a command's name into what it does and the family it does it to.
func subscribing(args [][]byte) (kind, family string) {
	kind = strings.ToLower(string(args[0]))
	if kind[0] == 'p' || strings.HasPrefix(kind, "ss") || strings.HasPrefix(kind, "sun") {
		family = kind[:1]
	}
	return kind, family
}

func runSubscribe(c *conn, args [][]byte) error {
	kind, family := subscribing(args)
	if limit := c.server.cfg.Wire.Subscribing; c.channels.total()+len(args)-1 > limit {
		c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "more than %d subscriptions on one connection", limit))
		return nil
	}
	for _, a := range args[1:] {
		if len(a) > semaphore.MaxName {
			c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "channel is longer than %d bytes", semaphore.MaxName))
			return nil
		}
	}
	for _, a := range args[1:] {
		c.channels.add(family, string(a))
		c.subscription(kind, family, string(a))
	}
	return nil
}

func runUnsubscribe(c *conn, args [][]byte) error {
	kind, family := subscribing(args)
	names := append([]string{}, c.channels.names[family]...)
	if len(args) > 1 {
		names = names[:0]
		for _, a := range args[1:] {
			names = append(names, string(a))
		}
	}
	for _, n := range names {
		c.channels.remove(family, n)
		c.subscription(kind, family, n)
	}
	if len(names) == 0 {
		c.out.push(3)
		c.out.bulk(kind)
		c.out.null()
		c.out.number(c.channels.count(family))
	}
	return nil
}

func (c *conn) subscription(kind, family, name string) {
	c.out.push(3)
	c.out.bulk(kind)
	c.out.bulk(name)
	c.out.number(c.channels.count(family))
}
