package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type nodeCommand struct {
	List     nodeListCommand     `cmd:"" help:"List the nodes."`
	Add      nodeAddCommand      `cmd:"" help:"Add a node."`
	Remove   nodeRemoveCommand   `cmd:"" help:"Remove a node from the cluster."`
	Transfer nodeTransferCommand `cmd:"" help:"Hand leadership over."`
	Snapshot nodeSnapshotCommand `cmd:"" help:"Write a snapshot of the state now, on the node that is asked."`
}

type nodeListCommand struct{}

func (*nodeListCommand) Run(ctx context.Context, s *session) error {
	servers := remote.Open(s.servers)
	defer servers.Close()
	nodes, err := servers.Nodes(ctx)
	if err != nil {
		return err
	}
	if !s.json {
		return s.printTable(nodeTable(nodes))
	}
	for _, n := range nodes {
		if err := s.printJSON(fieldsObject(n)); err != nil {
			return err
		}
	}
	return nil
}

// nodeTable shows what operators look for first, then whatever else the server tells.
func nodeTable(nodes []remote.Fields) table {
	names := []string{"label", "role", "voter", "self", "address"}
	if len(nodes) > 0 {
		for _, f := range nodes[0] {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	var t table
	var head []string
	for _, name := range names {
		if name == "self" {
			name = "asked"
		}
		head = append(head, strings.ToUpper(strings.ReplaceAll(name, "_", " ")))
	}
	t.add(head...)
	for _, n := range nodes {
		var cells []string
		for _, name := range names {
			cells = append(cells, nodeCell(n, name))
		}
		t.add(cells...)
	}
	return t
}

func nodeCell(n remote.Fields, name string) string {
	number, isNumber := n.Value(name).(int64)
	switch {
	case name == "voter", name == "self":
		return yesNo(number)
	case isNumber && number < 0, !isNumber && n.Text(name) == "":
		return "-"
	case isNumber:
		return strconv.FormatInt(number, 10)
	}
	return visible(n.Text(name))
}

// fieldsObject is a server's map as JSON.
func fieldsObject(fields remote.Fields) object {
	var o object
	for _, f := range fields {
		value := f.Value
		if s, ok := value.(string); ok {
			value = text(s)
		}
		o = append(o, member{f.Name, value})
	}
	return o
}

func yesNo(n int64) string {
	if n == 1 {
		return "yes"
	}
	return "no"
}

type nodeAddCommand struct {
	Address string `arg:"" help:"Where it listens for peers, host:port."`
}

func (c *nodeAddCommand) Run(ctx context.Context, s *session) error {
	return s.changeNodes(ctx, "added", "SEM.NODE", "ADD", c.Address)
}

type nodeRemoveCommand struct {
	Node string `arg:"" complete:"node" help:"Its id or label."`
	confirmFlag
}

func (c *nodeRemoveCommand) Run(ctx context.Context, s *session) error {
	if err := c.confirm(ctx, s, "remove the node %s from the cluster", visible(c.Node)); err != nil {
		return err
	}
	return s.changeNodes(ctx, "removed", "SEM.NODE", "REMOVE", c.Node)
}

type nodeTransferCommand struct {
	Node string `arg:"" optional:"" complete:"node" help:"Id or label of the node that shall lead (default: whichever is up to date)."`
}

func (c *nodeTransferCommand) Run(ctx context.Context, s *session) error {
	words := []any{"SEM.NODE", "TRANSFER"}
	if c.Node != "" {
		words = append(words, c.Node)
	}
	return s.changeNodes(ctx, "transferred", words...)
}

type nodeSnapshotCommand struct{}

func (*nodeSnapshotCommand) Run(ctx context.Context, s *session) error {
	return s.changeNodes(ctx, "written", "SEM.NODE", "SNAPSHOT")
}

// changeNodes sends a command that is not repeated when its answer was lost. It prints what the server
// answers, the id of a node or the path of a file, and where that is no more than a yes, what was done.
func (s *session) changeNodes(ctx context.Context, done string, words ...any) error {
	reply, err := s.ask(ctx, remote.Command{Args: func() []any { return words }, Once: true, Local: true})
	if err != nil {
		return err
	}
	answer, isText := reply.Value.(string)
	switch {
	case reply.Value == any(int64(0)):
		return s.no(object{{done, false}}, "there is no such node")
	case isText && answer != "OK":
		return s.say(object{{done, true}, {"answer", text(answer)}}, "%s", visible(answer))
	}
	return s.say(object{{done, true}}, "%s", done)
}
