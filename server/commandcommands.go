package server

import (
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// commandCommands describes COMMAND, by which clients learn the others.
func commandCommands() []*command {
	return []*command{
		{name: "count", summary: "Returns the number of commands.", run: runCommandCount},
		{name: "list", usage: "[FILTERBY filter value]", summary: "Lists the names of the commands.", run: runCommandList},
		{name: "info", usage: "[command-name…]", summary: "Describes commands for programs.", run: runCommandInfo},
		{name: "docs", usage: "[command-name…]", summary: "Describes commands for people.", run: runCommandDocs},
		{name: "getkeys", usage: "command [arg…]", summary: "Returns the keys in a command.", run: runCommandGetKeys},
	}
}

func runCommand(c *conn, _ [][]byte) error {
	all := c.server.table.all
	c.out.array(len(all))
	for _, cmd := range all {
		c.out.commandInfo(cmd, cmd.name)
	}
	return nil
}

func runCommandCount(c *conn, _ [][]byte) error {
	c.out.number(int64(len(c.server.table.all)))
	return nil
}

func runCommandList(c *conn, args [][]byte) error {
	keep := func(*command) bool { return true }
	if len(args) > 2 {
		if len(args) != 5 || !strings.EqualFold(string(args[2]), "FILTERBY") {
			c.refuse(errSyntax)
			return nil
		}
		var ok bool
		if keep, ok = commandFilter(string(args[3]), string(args[4])); !ok {
			c.refuse(errSyntax)
			return nil
		}
	}
	var names []string
	for _, cmd := range c.server.table.all {
		if keep(cmd) {
			names = append(names, cmd.name)
		}
	}
	c.out.array(len(names))
	for _, n := range names {
		c.out.bulk(n)
	}
	return nil
}

func commandFilter(kind, value string) (func(*command) bool, bool) {
	switch strings.ToUpper(kind) {
	case "MODULE":
		return func(*command) bool { return false }, true
	case "ACLCAT":
		return func(cmd *command) bool { return cmd.category() == "@"+strings.ToLower(value) }, true
	case "PATTERN":
		if len(value) > maxPattern {
			return nil, false
		}
		pattern := compileGlob(strings.ToLower(value))
		return func(cmd *command) bool { return pattern.match(cmd.name) }, true
	}
	return nil, false
}

func runCommandInfo(c *conn, args [][]byte) error {
	if len(args) == 2 {
		return runCommand(c, nil)
	}
	c.out.array(len(args) - 2)
	for _, a := range args[2:] {
		cmd, name := c.server.table.named(a)
		if cmd == nil {
			c.out.buf = append(c.out.room(), c.out.noGrant()...)
			continue
		}
		c.out.commandInfo(cmd, name)
	}
	return nil
}

// named finds a command by its name as COMMAND shows it, where | separates the words.
func (t *table) named(name []byte) (*command, string) {
	first, second, two := strings.Cut(string(name), "|")
	cmd := t.find([]byte(first))
	if cmd == nil || !two {
		return cmd, strings.ToLower(first)
	}
	return cmd.sub([]byte(second)), strings.ToLower(string(name))
}

// category is the only one of Redis's categories that a command belongs to, by its group.
func (c *command) category() string {
	switch c.group {
	case "transactions":
		return "@transaction"
	case "server":
		return "@admin"
	}
	return "@" + c.group
}

// commandInfo writes a command as COMMAND and COMMAND INFO show it.
func (o *output) commandInfo(c *command, name string) {
	key := truth(c.keyed)
	o.array(10)
	o.bulk(name)
	o.number(int64(c.arity))
	words := c.flags.words()
	o.set(len(words))
	for _, w := range words {
		o.status(w)
	}
	o.number(key)
	o.number(key)
	o.number(key)
	o.set(1)
	o.status(c.category())
	o.array(0)
	o.keySpecs(c)
	o.array(len(c.subs))
	for _, s := range c.subs {
		o.commandInfo(s, name+"|"+s.name)
	}
}

// keySpecs says where the keys are in the newer, more general form.
func (o *output) keySpecs(c *command) {
	if !c.keyed {
		o.array(0)
		return
	}
	access := "RW"
	if c.flags.has(flagReadonly) {
		access = "RO"
	}
	o.array(1)
	o.mapping(3)
	o.bulk("flags")
	o.set(2)
	o.status(access)
	o.status("ACCESS")
	o.bulk("begin_search")
	o.mapping(2)
	o.bulk("type")
	o.bulk("index")
	o.bulk("spec")
	o.mapping(1)
	o.bulk("index")
	o.number(1)
	o.bulk("find_keys")
	o.mapping(2)
	o.bulk("type")
	o.bulk("range")
	o.bulk("spec")
	o.mapping(3)
	for _, f := range [...]struct {
		name  string
		value int64
	}{{"lastkey", 0}, {"keystep", 1}, {"limit", 0}} {
		o.bulk(f.name)
		o.number(f.value)
	}
}

func runCommandDocs(c *conn, args [][]byte) error {
	type entry struct {
		command *command
		name    string
	}
	var all []entry
	for _, a := range args[2:] {
		if cmd, name := c.server.table.named(a); cmd != nil {
			all = append(all, entry{cmd, name})
		}
	}
	if len(args) == 2 {
		for _, cmd := range c.server.table.all {
			all = append(all, entry{cmd, cmd.name})
		}
	}
	c.out.mapping(len(all))
	for _, e := range all {
		c.out.bulk(e.name)
		c.out.commandDocs(e.command, e.name)
	}
	return nil
}

func (o *output) commandDocs(c *command, name string) {
	n := 3
	if len(c.arguments) > 0 {
		n++
	}
	if len(c.subs) > 0 {
		n++
	}
	o.mapping(n)
	for _, f := range [...]Field{{"summary", c.summary}, {"since", "1.0.0"}, {"group", c.group}} {
		o.bulk(f.Name)
		o.bulk(f.Value)
	}
	if len(c.arguments) > 0 {
		o.bulk("arguments")
		o.argumentDocs(c.arguments)
	}
	if len(c.subs) > 0 {
		o.bulk("subcommands")
		o.mapping(len(c.subs))
		for _, s := range c.subs {
			o.bulk(name + "|" + s.name)
			o.commandDocs(s, name+"|"+s.name)
		}
	}
}

func (o *output) argumentDocs(all []argument) {
	o.array(len(all))
	for _, a := range all {
		fields := []Field{{"name", a.name}, {"type", a.kind}}
		if a.token != "" {
			fields = append(fields, Field{"token", a.token})
		}
		if a.kind != "oneof" && a.kind != "block" && a.kind != "pure-token" {
			fields = append(fields, Field{"display_text", a.name})
		}
		var flags []string
		if a.optional {
			flags = append(flags, "optional")
		}
		if a.multiple {
			flags = append(flags, "multiple")
		}
		o.mapping(len(fields) + int(truth(len(flags) > 0)+truth(len(a.parts) > 0)))
		for _, f := range fields {
			o.bulk(f.Name)
			o.bulk(f.Value)
		}
		if len(flags) > 0 {
			o.bulk("flags")
			o.set(len(flags))
			for _, f := range flags {
				o.status(f)
			}
		}
		if len(a.parts) > 0 {
			o.bulk("arguments")
			o.argumentDocs(a.parts)
		}
	}
}

func runCommandGetKeys(c *conn, args [][]byte) error {
	inner := args[2:]
	cmd := c.server.table.find(inner[0])
	switch {
	case cmd == nil:
		c.refuse(refusal("Invalid command specified"))
	case !cmd.fits(len(inner)):
		c.refuse(refusal("Invalid number of arguments specified for command"))
	case !cmd.keyed:
		c.refuse(semaphore.Errorf(semaphore.CodeInvalid, "The command has no key arguments"))
	default:
		c.out.array(1)
		c.out.bytes(inner[1])
	}
	return nil
}
