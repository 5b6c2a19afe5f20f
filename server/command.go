package server

import (
	"strings"

	"github.com/semserver/semserver/semaphore"
)

// command describes one command: how it is written, what it does, and who carries it out. Exactly
// one of parse, run and subs is set.
type command struct {
	name    string // in lower case
	usage   string // its arguments (see parseUsage); arity and documentation follow from it
	summary string
	group   string // as in Redis's documentation
	flags   flags
	keyed   bool // the first argument is the key

	parse func(*rules, *arguments) call // makes a request to the backend
	run   func(*conn, [][]byte) error   // answers by itself; args[0] is the command's name
	subs  []*command                    // commands of two words; their name is the second one

	arguments []argument
	arity     int
	index     int // in the table, for counters
	byName    map[string]*command
}

// flags say what may be done with a command, in the words of COMMAND INFO.
type flags uint

const (
	flagWrite flags = 1 << iota
	flagReadonly
	flagBlocking
	flagFast
	flagAdmin
	flagPubsub
	flagNoAuth     // also before authentication
	flagNoMulti    // not within MULTI
	flagNoQueue    // carried out at once, also within MULTI
	flagSubscribed // also on a connection that has subscribed
)

func (f flags) has(x flags) bool { return f&x != 0 }

// words are the flags that COMMAND INFO knows.
func (f flags) words() []string {
	var words []string
	for _, w := range []struct {
		flag flags
		word string
	}{
		{flagWrite, "write"}, {flagReadonly, "readonly"}, {flagBlocking, "blocking"}, {flagFast, "fast"},
		{flagAdmin, "admin"}, {flagPubsub, "pubsub"}, {flagNoAuth, "no_auth"}, {flagNoMulti, "no_multi"},
	} {
		if f.has(w.flag) {
			words = append(words, w.word)
		}
	}
	return words
}

// complete derives what follows from the description. words is how many words name the command.
func (c *command) complete(words int) {
	c.arguments = parseUsage(c.usage)
	c.arity = arity(words, c.arguments)
	if len(c.subs) == 0 {
		return
	}
	c.arity = -2
	if c.run != nil {
		c.arity = -1
	}
	c.subs = append(c.subs, &command{name: "help", summary: "Lists these commands.", run: runSubHelp})
	c.byName = map[string]*command{}
	for _, s := range c.subs {
		s.group, s.flags, s.index = c.group, s.flags|c.flags, c.index
		s.complete(words + 1)
		c.byName[s.name] = s
	}
}

// fits reports whether a command may have so many arguments, its name included.
func (c *command) fits(n int) bool {
	if c.arity < 0 {
		return n >= -c.arity
	}
	return n == c.arity
}

// request parses the words behind the name, with a to work in. It is total and changes nothing else.
func (c *command) request(r *rules, a *arguments, words [][]byte) (call, *semaphore.Error) {
	*a = arguments{rest: words, key: a.key}
	q := c.parse(r, a)
	if len(a.rest) > 0 {
		a.fail("unknown option '%s'", printable(a.rest[0]))
	}
	a.rest = nil // the words are soon overwritten, or given back
	q.command = c
	return q, a.err
}

// table holds every command under its name.
type table struct {
	all    []*command // as described, in order
	byName map[string]*command
}

func newTable() *table {
	t := &table{byName: map[string]*command{}}
	for _, group := range [][]*command{semaphoreCommands(), connectionCommands(), serverCommands(), pubsubCommands(), transactionCommands()} {
		t.all = append(t.all, group...)
	}
	for i, c := range t.all {
		c.index = i
		c.complete(1)
		t.byName[c.name] = c
	}
	return t
}

// find returns the command of that name in any case, or nil.
func (t *table) find(name []byte) *command { return findCommand(t.byName, name) }

// sub returns the subcommand of that name in any case, or nil.
func (c *command) sub(name []byte) *command { return findCommand(c.byName, name) }

func findCommand(in map[string]*command, name []byte) *command {
	var buf [maxWord]byte
	return in[string(lower(&buf, name))]
}

// errWrongNumber is Redis's refusal of too few or too many arguments.
func errWrongNumber(name string) *semaphore.Error {
	return semaphore.Errorf(semaphore.CodeInvalid, "wrong number of arguments for '%s' command", name)
}

// errUnknown is Redis's refusal of a command that there is not.
func errUnknown(args [][]byte) *semaphore.Error {
	var with strings.Builder
	for _, a := range args[1:] {
		if with.Len() >= 128 {
			break
		}
		with.WriteString("'" + printable(a) + "' ")
	}
	return semaphore.Errorf(semaphore.CodeInvalid, "unknown command '%s', with args beginning with: %s", printable(args[0]), with.String())
}

// errUnknownSub is Redis's refusal of a subcommand that there is not.
func errUnknownSub(c *command, name []byte) *semaphore.Error {
	return semaphore.Errorf(semaphore.CodeInvalid, "unknown subcommand '%s'. Try %s HELP.", printable(name), strings.ToUpper(c.name))
}

// runSubHelp lists the subcommands of a command.
func runSubHelp(c *conn, args [][]byte) error {
	of := c.server.table.find(args[0])
	c.out.array(len(of.subs))
	for _, s := range of.subs {
		line := strings.TrimSpace(strings.ToUpper(of.name+" "+s.name) + " " + s.usage)
		c.out.status(line + " - " + s.summary)
	}
	return nil
}
