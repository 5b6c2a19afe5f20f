package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"
)

// given are the flags that were given, of those that are for one mode alone.
type given struct {
	cluster []string
	redis   []string
}

// byMode finds what was given by the command line, the environment or the file. The directory for data is
// not counted when the environment gives it: images of containers say there where it would be.
func byMode(ctx *kong.Context, env environment) given {
	var g given
	for _, p := range ctx.Path {
		switch f := p.Flag; {
		case f == nil:
		case f.Name == "data-dir" && p.Resolved && env[envName(f.Name)] != "":
		case f.Group != nil && f.Group.Key == "Cluster" || f.Tag.Get("mode") == "cluster":
			g.cluster = append(g.cluster, f.Name)
		case f.Group != nil && f.Group.Key == "Redis":
			g.redis = append(g.redis, f.Name)
		}
	}
	return g
}

// check refuses flags for another mode than the one that the node would run in.
func (g given) check(redis bool) error {
	switch {
	case redis && len(g.cluster) > 0:
		return fmt.Errorf("--%s is for a node that keeps semaphores itself: with --redis that Redis keeps them", g.cluster[0])
	case !redis && len(g.redis) > 0 && g.redis[0] == "redis":
		return errors.New("--redis is empty")
	case !redis && len(g.redis) > 0:
		return fmt.Errorf("--%s is for a server whose semaphores are in a Redis: say by --redis in which", g.redis[0])
	}
	return nil
}
