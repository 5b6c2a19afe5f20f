package server

import "strings"

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
		{name: "sem.node", summary: "Shows the cluster's nodes and takes care of them.", flags: flagAdmin, subs: nodeCommands()},
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
