package main

import (
	"context"
	"fmt"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// handoverThree measures hand-overs between clients of the same node of three and of different ones.
func handoverThree(ctx context.Context, b *bench) error {
	c, err := b.several(3, b.stores[0])
	if err != nil {
		return err
	}
	defer c.stop()
	leads, err := c.leader()
	if err != nil {
		return err
	}
	leader, follower, other := c.nodes[leads], c.nodes[(leads+1)%3], c.nodes[(leads+2)%3]
	conn, err := resp.Dial(leader.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := isText(conn.Do("SEM.CREATE", "pool", 1)); err != nil {
		return err
	}
	for _, way := range []struct {
		from, to string
		holder   *node.Node
		next     *node.Node
	}{
		{"leader", "leader", leader, leader},
		{"leader", "follower", leader, follower},
		{"follower", "leader", follower, leader},
		{"follower", "other follower", follower, other},
	} {
		r, err := b.handOversBetween(ctx, fmt.Sprintf("three nodes, %s to %s", way.from, way.to), way.holder, way.next)
		if err != nil {
			return err
		}
		b.rows = append(b.rows, r)
	}
	return nil
}

func (b *bench) handOversBetween(ctx context.Context, where string, from, to *node.Node) (row, error) {
	holder, err := resp.Dial(from.Addr)
	if err != nil {
		return row{}, err
	}
	defer holder.Close()
	next, err := resp.Dial(to.Addr)
	if err != nil {
		return row{}, err
	}
	defer next.Close()
	return b.handOvers(ctx, where, holder, next)
}
