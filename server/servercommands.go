package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/semaphore"
)

const (
	// redisVersion is the Redis that clients may take us for when they decide what to send.
	redisVersion = "7.4.0"
	// databases is how many numbers SELECT accepts: there is one set of semaphores, and who believes in
	// another should be told.
	databases = 1
)

// serverCommands describes the commands about the server, as far as clients send them by themselves.
func serverCommands() []*command {
	all := []*command{
		{name: "command", flags: flagFast, run: runCommand, subs: commandCommands(), summary: "Describes every command."},
		{name: "config", summary: "Shows the configuration.", flags: flagAdmin, subs: []*command{
			{name: "get", usage: "pattern…", run: runConfigGet, summary: "Shows parameters that clients ask for."},
		}},
		{name: "info", usage: "[section…]", run: runInfo, summary: "Figures of this server."},
		{name: "time", flags: flagFast, run: runTime, summary: "Returns the time of day: seconds since 1970, and microseconds."},
		{name: "role", flags: flagFast, run: runRole, summary: "Returns the role: every node takes every command."},
		{name: "readonly", flags: flagFast, run: runOK, summary: "Accepted; it makes no difference."},
		{name: "readwrite", flags: flagFast, run: runOK, summary: "Accepted; it makes no difference."},
		{name: "asking", flags: flagFast, run: runOK, summary: "Accepted; it makes no difference."},
		{name: "cluster", summary: "Shows the nodes as a Redis Cluster of one shard, with --cluster-commands yes; else refused.", subs: clusterCommands()},
	}
	for _, c := range all {
		c.group = "server"
	}
	return all
}

func runOK(c *conn, _ [][]byte) error {
	c.out.ok()
	return nil
}

func runRole(c *conn, _ [][]byte) error {
	c.out.array(3)
	c.out.bulk("master")
	c.out.number(0)
	c.out.array(0)
	return nil
}

func runTime(c *conn, _ [][]byte) error {
	now := time.Now()
	c.out.array(2)
	c.out.bulk(strconv.FormatInt(now.Unix(), 10))
	c.out.bulk(strconv.Itoa(now.Nanosecond() / 1000))
	return nil
}

// parameters are what CONFIG GET can show: what clients ask for when they connect.
func (s *Server) parameters() []Field {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	return []Field{
		{"appendonly", "no"},
		{"databases", strconv.Itoa(databases)},
		{"maxclients", strconv.Itoa(s.cfg.MaxClients)},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{"proto-max-bulk-len", strconv.Itoa(s.cfg.Wire.Command)},
		{"replica-read-only", "no"},
		{"save", ""},
		{"slave-read-only", "no"},
		{"timeout", seconds(s.cfg.IdleTimeout)},
	}
}

func runConfigGet(c *conn, args [][]byte) error {
	wanted := map[string]bool{}
	for _, a := range args[2:] {
		if len(a) > maxPattern {
			c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "pattern is longer than %d bytes", maxPattern))
			return nil
		}
		pattern := compileGlob(strings.ToLower(string(a)))
		for _, p := range c.server.parameters() {
			if pattern.match(p.Name) {
				wanted[p.Name] = true
			}
		}
	}
	c.out.mapping(len(wanted))
	for _, p := range c.server.parameters() {
		if wanted[p.Name] {
			c.out.bulk(p.Name)
			c.out.bulk(p.Value)
		}
	}
	return nil
}
