package server

import "github.com/semserver/semserver/semaphore"

// transactionCommands describes MULTI and what belongs to it.
func transactionCommands() []*command {
	all := []*command{
		{name: "multi", run: runMulti, summary: "Begins to queue commands."},
		{name: "exec", run: runExec, summary: "Carries out the queued commands, each by itself: none is undone because another was refused. WAIT counts as 0."},
		{name: "discard", run: runDiscard, summary: "Forgets the queued commands."},
		{name: "watch", usage: "key…", run: runWatch, summary: "Refused: semaphores cannot be watched."},
		{name: "unwatch", run: runUnwatch, summary: "Accepted; nothing is watched."},
	}
	for _, c := range all {
		c.group, c.flags = "transactions", flagFast|flagNoQueue|flagNoMulti
	}
	return all
}

// transaction is the queue between MULTI and EXEC. It is no longer than a run, so that requests which
// follow each other reach the backend together. A listing, or a command that is not a request, ends a
// run here as elsewhere.
type transaction struct {
	queue   [][][]byte
	size    int  // bytes queued
	aborted bool // a command was refused: EXEC refuses the rest
	running bool // EXEC carries out the queue
}

// add queues a command, or refuses it and with it the whole transaction.
func (t *transaction) add(c *conn, cmd *command, args [][]byte, refused *semaphore.Error) error {
	if refused == nil {
		refused = t.admit(c, cmd, args)
	}
	if refused != nil {
		t.aborted = true
		c.refuse(refused)
		return nil
	}
	kept := make([][]byte, len(args))
	for i, a := range args {
		kept[i] = append([]byte(nil), a...)
	}
	t.queue = append(t.queue, kept)
	c.out.status("QUEUED")
	return c.relieve()
}

// admit checks what can be checked before the command's turn.
func (t *transaction) admit(c *conn, cmd *command, args [][]byte) *semaphore.Error {
	if cmd.flags.has(flagNoMulti) {
		return semaphore.Errorf(semaphore.CodeInvalid, "Command '%s' not allowed inside a transaction", cmd.name)
	}
	for _, a := range args {
		t.size += len(a)
	}
	if len(t.queue) == semaphore.MaxRun || t.size > c.server.cfg.Wire.Command {
		return semaphore.Errorf(semaphore.CodeInvalid, "transaction is longer than %d commands or %d bytes", semaphore.MaxRun, c.server.cfg.Wire.Command)
	}
	if cmd.parse == nil {
		return nil
	}
	_, err := cmd.request(&c.rules, &c.words, args[1:])
	return err
}

func runMulti(c *conn, _ [][]byte) error {
	if c.multi != nil {
		c.refuse(refusal("MULTI calls can not be nested"))
		return nil
	}
	c.multi = &transaction{}
	c.out.ok()
	return nil
}

func runExec(c *conn, _ [][]byte) error {
	t := c.multi
	switch {
	case t == nil:
		c.refuse(refusal("EXEC without MULTI"))
		return nil
	case t.aborted:
		c.multi = nil
		c.refuse(&semaphore.Error{Code: codeExecAbort, Message: "Transaction discarded because of previous errors."})
		return nil
	}
	defer func() { c.multi = nil }()
	t.running = true
	c.out.array(len(t.queue))
	for _, args := range t.queue {
		if err := c.dispatch(args); err != nil {
			return err
		}
	}
	return c.carryOut()
}

func runDiscard(c *conn, _ [][]byte) error {
	if c.multi == nil {
		c.refuse(refusal("DISCARD without MULTI"))
		return nil
	}
	c.multi = nil
	c.out.ok()
	return nil
}

// runWatch refuses: accepting it would promise that EXEC notices changes.
func runWatch(c *conn, _ [][]byte) error {
	c.refuse(refusal("WATCH is not supported: requests on semaphores are safe without it"))
	return nil
}

func runUnwatch(c *conn, _ [][]byte) error {
	c.out.ok()
	return nil
}
