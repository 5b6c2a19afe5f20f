package main

import (
	"context"
	"fmt"

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
	var t table
	t.add("LABEL", "ADDRESS", "ROLE", "VOTER", "ASKED", "ID")
	for _, n := range nodes {
		if s.json {
			if err := s.printJSON(fieldsObject(n)); err != nil {
				return err
			}
			continue
		}
		t.add(visible(n.Text("label")), visible(n.Text("address")), visible(n.Text("role")),
			yesNo(n.Number("voter")), yesNo(n.Number("self")), visible(n.Text("id")))
	}
	if s.json {
		return nil
	}
	return s.printTable(t)
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

// changeNodes sends a command that is not repeated when its answer was lost, and prints its reply.
func (s *session) changeNodes(ctx context.Context, done string, words ...any) error {
	reply, err := s.ask(ctx, remote.Command{Args: func() []any { return words }, Once: true})
	if err != nil {
		return err
	}
	said := fmt.Sprint(reply.Value)
	return s.say(object{{"done", done}, {"reply", text(said)}}, "%s", done)
}
