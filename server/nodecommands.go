package server

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// nodeCommands describes SEM.NODE.
func nodeCommands() []*command {
	return []*command{
		{name: "list", summary: "Lists the nodes.", run: runNodeList},
		{name: "add", usage: "address", summary: "Adds the empty node that waits at this peer address, host:port; returns its id.", run: cared(runNodeAdd)},
		{name: "remove", usage: "node", summary: "Removes a node, by id or label; 0 if there is none.", run: cared(runNodeRemove)},
		{name: "transfer", usage: "[node]", summary: "Hands leadership to a node, by id or label, or to the one that serves best.", run: cared(runNodeTransfer)},
		{name: "snapshot", summary: "Writes a snapshot of the state now; returns the path of the file that --restore takes.", run: cared(runNodeSnapshot)},
	}
}

func runNodeList(c *conn, _ [][]byte) error {
	if c.server.cfg.Members == nil {
		c.refuse(errNoMembers)
		return nil
	}
	all, err := c.server.cfg.Members.List()
	if err != nil {
		c.refuse(asRefusal(err))
		return nil
	}
	c.out.array(len(all))
	for _, m := range all {
		c.out.member(m)
	}
	return nil
}

// member writes a node. Fields are added at the end: there are clients that go by the order.
func (o *output) member(m Member) {
	o.mapping(8)
	for _, f := range [...]Field{{"id", m.ID}, {"label", m.Label}, {"address", m.Address}, {"role", m.Role}} {
		o.bulk(f.Name)
		o.bulk(f.Value)
	}
	o.bulk("voter")
	o.number(truth(m.Voter))
	o.bulk("self")
	o.number(truth(m.Self))
	o.bulk("client_address")
	o.bulk(m.ClientAddress)
	o.bulk("applied_index")
	o.number(m.Applied)
}

// cared makes a command of one that may take seconds: what came before it is told first.
func cared(run func(c *conn, care Care, args [][]byte) error) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		if c.server.cfg.Care == nil || c.server.cfg.Members == nil {
			c.refuse(errNoMembers)
			return nil
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := run(c, c.server.cfg.Care, args[2:]); err != nil {
			c.refuse(asRefusal(err))
		}
		return nil
	}
}

func runNodeAdd(c *conn, care Care, args [][]byte) error {
	address := string(args[0])
	if _, _, ok := endpoint(address); !ok {
		return semaphore.Errorf(semaphore.CodeInvalid, "address '%s' is not host:port", printable(args[0]))
	}
	id, err := care.Add(address)
	if err != nil {
		return err
	}
	c.out.bulk(id)
	return nil
}

func runNodeRemove(c *conn, care Care, args [][]byte) error {
	id, err := c.server.nodeID(string(args[0]))
	if err != nil {
		return err
	}
	removed, err := care.Remove(id)
	if err != nil {
		return err
	}
	c.out.number(truth(removed))
	return nil
}

func runNodeTransfer(c *conn, care Care, args [][]byte) error {
	id := ""
	if len(args) > 1 {
		return errWrongNumber("sem.node|transfer")
	}
	if len(args) == 1 {
		var err error
		if id, err = c.server.nodeID(string(args[0])); err != nil {
			return err
		}
	}
	if err := care.Transfer(id); err != nil {
		return err
	}
	c.out.ok()
	return nil
}

func runNodeSnapshot(c *conn, care Care, _ [][]byte) error {
	path, err := care.Snapshot()
	if err != nil {
		return err
	}
	c.out.bulk(path)
	return nil
}

// nodeID returns the id of the node that is meant, by its id or by a label that it alone has. A name
// that nobody has is taken for an id: the leader knows members that this node does not.
func (s *Server) nodeID(node string) (string, error) {
	if node == "" {
		return "", refusal("node must not be empty")
	}
	all, err := s.cfg.Members.List()
	if err != nil {
		return "", err
	}
	var labelled []string
	for _, m := range all {
		if m.ID == node {
			return node, nil
		}
		if m.Label == node {
			labelled = append(labelled, m.ID)
		}
	}
	switch len(labelled) {
	case 0:
		return node, nil
	case 1:
		return labelled[0], nil
	}
	return "", semaphore.Errorf(semaphore.CodeInvalid, "label '%s' is that of the nodes %s: name one by its id",
		printable([]byte(node)), strings.Join(labelled, ", "))
}

// endpoint takes host:port apart. It returns false where that is not what it is.
func endpoint(address string) (host string, port int, ok bool) {
	host, text, err := net.SplitHostPort(address)
	if err != nil || host == "" || len(host) > maxHost {
		return "", 0, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int(n), err == nil && n > 0
}

// maxHost is the longest name of a host in DNS.
const maxHost = 255

// asRefusal words an error of an operation that did not change any semaphore.
func asRefusal(err error) *semaphore.Error {
	var e *semaphore.Error
	if errors.As(err, &e) {
		return e
	}
	return semaphore.Errorf(semaphore.CodeInvalid, "%v", err)
}
