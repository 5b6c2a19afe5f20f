package server

import (
	"errors"
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// semaphoreCommands describes the commands that the server exists for.
func semaphoreCommands() []*command {
	const settings = " [LEASE ms] [MAXLEASE ms] [MAXHOLD ms] [QUARANTINE ms] [IDLE ms]"
	all := []*command{
		{name: "sem.create", usage: "key capacity" + settings + " [MINTOKEN t] [IFABSENT]", flags: flagWrite, keyed: true, parse: parseCreate,
			summary: "Makes a semaphore, or confirms that it exists with these settings."},
		{name: "sem.acquire", usage: "key [HOLDER id] [PERMITS n] [LEASE ms | PERSIST] [WAIT ms] [CAPACITY n] [LABEL text] [FRESH] [SLOTS]",
			flags: flagWrite | flagBlocking, keyed: true, parse: parseAcquire,
			summary: "Takes permits, waiting in line for them up to WAIT; null if there were none in time."},
		{name: "sem.release", usage: "key holder [TOKEN t]", flags: flagWrite | flagFast, keyed: true, parse: parseRelease,
			summary: "Gives a holder's permits back; 0 if it did not hold any."},
		{name: "sem.renew", usage: "key holder [LEASE ms | PERSIST] [TOKEN t]", flags: flagWrite | flagFast, keyed: true, parse: parseRenew,
			summary: "Sets the lease of a grant, counted from now; 0 if the holder does not hold any more."},
		{name: "sem.cancel", usage: "key holder", flags: flagWrite | flagFast, keyed: true, parse: parseCancel,
			summary: "Makes a waiting holder leave the line."},
		{name: "sem.check", usage: "key holder token", flags: flagReadonly | flagFast, keyed: true, parse: parseCheck,
			summary: "Tells whether this very grant is live now."},
		{name: "sem.reconcile", usage: "key [CAPACITY n]", flags: flagWrite, keyed: true, parse: parseReconcile,
			summary: "Makes free and held permits add up to the capacity again; returns how many came back."},
		{name: "sem.resize", usage: "key capacity" + settings, flags: flagWrite, keyed: true, parse: parseResize,
			summary: "Changes the capacity and settings of a semaphore."},
		{name: "sem.info", usage: "key", flags: flagReadonly, keyed: true, parse: parseInfo,
			summary: "Figures and settings of a semaphore."},
		{name: "sem.holders", usage: "key [CURSOR c] [COUNT n]", flags: flagReadonly, keyed: true, parse: parseHolders,
			summary: "Lists who holds permits."},
		{name: "sem.waiters", usage: "key [CURSOR c] [COUNT n]", flags: flagReadonly, keyed: true, parse: parseWaiters,
			summary: "Lists who waits, in line order."},
		{name: "sem.scan", usage: "cursor [MATCH pattern] [COUNT n]", flags: flagReadonly, parse: parseScan,
			summary: "Lists the semaphores."},
		{name: "sem.delete", usage: "key [FORCE]", flags: flagWrite, keyed: true, parse: parseDelete,
			summary: "Deletes a semaphore that nobody holds, or any with FORCE."},
		{name: "sem.node", summary: "Shows the cluster's nodes and takes care of this one.", flags: flagAdmin, subs: []*command{
			{name: "list", summary: "Lists the nodes.", run: runNodeList},
			{name: "snapshot", summary: "Writes a snapshot of the state now.", run: runNodeSnapshot},
			{name: "add", usage: "[address]", summary: "Adds a node.", run: runNoPeers},
			{name: "remove", usage: "[node]", summary: "Removes a node.", run: runNoPeers},
			{name: "transfer", usage: "[node]", summary: "Hands leadership over.", run: runNoPeers},
		}},
		{name: "sem.help", summary: "Lists these commands.", flags: flagFast, run: runHelp},
	}
	for _, c := range all {
		c.group = "semaphore"
	}
	return all
}

func runHelp(c *conn, _ [][]byte) error {
	var lines []string
	for _, cmd := range c.server.table.all {
		if cmd.group != "semaphore" {
			continue
		}
		name := strings.ToUpper(cmd.name)
		if len(cmd.subs) == 0 {
			lines = append(lines, strings.TrimSpace(name+" "+cmd.usage)+" - "+cmd.summary)
		}
		for _, s := range cmd.subs {
			if s.name == "help" {
				continue
			}
			lines = append(lines, strings.TrimSpace(name+" "+strings.ToUpper(s.name)+" "+s.usage)+" - "+s.summary)
		}
	}
	c.out.array(len(lines))
	for _, l := range lines {
		c.out.status(l)
	}
	return nil
}

func runNodeList(c *conn, _ [][]byte) error {
	members := c.server.cfg.Members
	if members == nil {
		return runNoPeers(c, nil)
	}
	all, err := members.List()
	if err != nil {
		c.refuse(asRefusal(err))
		return nil
	}
	c.out.array(len(all))
	for _, m := range all {
		c.out.mapping(6)
		for _, f := range [...]Field{{"id", m.ID}, {"label", m.Label}, {"address", m.Address}, {"role", m.Role}} {
			c.out.bulk(f.Name)
			c.out.bulk(f.Value)
		}
		c.out.bulk("voter")
		c.out.number(truth(m.Voter))
		c.out.bulk("self")
		c.out.number(truth(m.Self))
	}
	return nil
}

func runNodeSnapshot(c *conn, _ [][]byte) error {
	members := c.server.cfg.Members
	if members == nil {
		return runNoPeers(c, nil)
	}
	if err := members.Snapshot(); err != nil {
		c.refuse(asRefusal(err))
		return nil
	}
	c.out.ok()
	return nil
}

func runNoPeers(c *conn, _ [][]byte) error {
	c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "this node has no peers"))
	return nil
}

// asRefusal words an error of an operation that did not change any semaphore.
func asRefusal(err error) *semaphore.Error {
	var e *semaphore.Error
	if errors.As(err, &e) {
		return e
	}
	return semaphore.Errorf(semaphore.CodeInvalid, "%v", err)
}
