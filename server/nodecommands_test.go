package server

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// withTrio starts a server that is one of a trio.
func withTrio(t *testing.T, change ...func(*Config)) (*rig, *trio) {
	t.Helper()
	n := newTrio()
	r := start(t, append(change, func(c *Config) { c.Members, c.Care = n, n })...)
	return r, n
}

func TestFaultsOfTheEngineAreToldToTheOperator(t *testing.T) {
	r, n := withTrio(t)
	n.change(func(n *trio) { n.fault = errors.New("disk\r\nfull") })
	c := r.dial(t)
	for _, command := range []string{
		"SEM.NODE LIST", "SEM.NODE ADD a:1", "SEM.NODE REMOVE b", "SEM.NODE TRANSFER", "SEM.NODE TRANSFER b", "SEM.NODE SNAPSHOT",
	} {
		if got, want := c.do(command), "-ERR disk  full\r\n"; got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func TestServerWithoutMembersRefusesToCareForThem(t *testing.T) {
	c := start(t).dial(t)
	for _, command := range []string{
		"SEM.NODE LIST", "SEM.NODE ADD a:1", "SEM.NODE REMOVE b", "SEM.NODE TRANSFER", "SEM.NODE SNAPSHOT",
	} {
		if got, want := c.do(command), "-ERR this node has no peers\r\n"; got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func TestLabelThatIsTheIDOfAnotherNodeMeansThatNode(t *testing.T) {
	r, n := withTrio(t)
	n.change(func(n *trio) { n.nodes[0].Label = n.nodes[1].ID })
	r.dial(t).send("SEM.NODE REMOVE bbbbbbbbbbbbbbbb").want(":1\r\n")

	left, _ := n.List()

	if slices.ContainsFunc(left, func(m Member) bool { return m.ID == "bbbbbbbbbbbbbbbb" }) || len(left) != 2 {
		t.Errorf("got %+v, want the others", left)
	}
}

// A change of the cluster takes seconds. Nobody else waits for it, and what the client sent before is
// answered before.
func TestSlowChangeOfTheClusterHoldsNobodyUp(t *testing.T) {
	r, n := withTrio(t)
	hold := make(chan struct{})
	n.change(func(n *trio) { n.hold = hold })
	slow, other, gone := r.dial(t), r.dial(t), r.dial(t)

	slow.raw(request("PING") + request("SEM.NODE ADD 10.0.0.4:7361") + request("PING")).want("+PONG\r\n")
	gone.raw(request("PING") + request("SEM.NODE REMOVE b")).want("+PONG\r\n")
	gone.Close()
	other.send("SEM.CREATE k 1").want("+OK\r\n")
	if got := other.do("SEM.NODE LIST"); got[:4] != "*3\r\n" {
		t.Errorf("list meanwhile: got %q, want three nodes", got)
	}

	close(hold)
	if id := slow.reply(); !strings.HasPrefix(id, "$16\r\n") {
		t.Errorf("add: got %q, want an id", id)
	}
	slow.want("+PONG\r\n")
}
