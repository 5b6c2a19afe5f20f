package server

import (
	"strings"
	"testing"
)

func TestArityFollowsFromUsage(t *testing.T) {
	table := newTable()
	for name, want := range map[string]int{
		"sem.create": -3, "sem.acquire": -2, "sem.release": -3, "sem.cancel": 3, "sem.check": 4, "sem.info": 2, "sem.scan": -2,
		"sem.help": 1, "ping": -1, "auth": -2, "hello": -1, "select": 2, "subscribe": -2, "unsubscribe": -1, "quit": 1, "command": -1,
		"client|id": 2, "client|setname": 3, "client|setinfo": 4, "client|kill": -3, "client|tracking": -3, "command|getkeys": -3, "config|get": -3,
		"sem.node|list": 2, "sem.node|add": 3, "sem.node|remove": 3, "sem.node|transfer": -2, "cluster|slots": 2, "cluster|keyslot": 3, "asking": 1,
	} {
		cmd, _ := table.named([]byte(name))
		if cmd == nil || cmd.arity != want {
			t.Errorf("%s: got %+v, want arity %d", name, cmd, want)
		}
	}
}

func TestEveryCommandIsDescribedOnce(t *testing.T) {
	var check func(name string, c *command)
	check = func(name string, c *command) {
		ways := int(truth(c.parse != nil) + truth(c.run != nil))
		if len(c.subs) == 0 && ways != 1 {
			t.Errorf("%s is carried out in %d ways, want 1", name, ways)
		}
		if c.summary == "" || c.group == "" || c.name != strings.ToLower(c.name) {
			t.Errorf("%s lacks a summary or group, or its name is not in lower case", name)
		}
		for _, s := range c.subs {
			check(name+" "+s.name, s)
		}
	}
	table := newTable()
	if len(table.byName) != len(table.all) {
		t.Errorf("%d names for %d commands", len(table.byName), len(table.all))
	}
	for _, c := range table.all {
		check(c.name, c)
	}
}

func TestHelpHasALineForEachCommand(t *testing.T) {
	help := start(t).dial(t).do("SEM.HELP")
	for _, want := range []string{"SEM.ACQUIRE key [HOLDER id]", "SEM.SCAN cursor [MATCH pattern] [COUNT n] - ", "SEM.NODE SNAPSHOT - ", "SEM.HELP - "} {
		if !strings.Contains(help, "\n+"+want) {
			t.Errorf("SEM.HELP lacks %q", want)
		}
	}
}
