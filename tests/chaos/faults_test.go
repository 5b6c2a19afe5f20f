package chaos

import (
	"fmt"
	"time"

	"github.com/semserver/semserver/tests/chaos/internal/proxy"
)

// fault breaks something, waits, and mends it, except for the network, which is healed for it. It says
// what it did, and which nodes could not answer meanwhile.
type fault func(p *performance) (what string, mute []int)

const (
	// beyondElection is longer than it takes to elect another leader, on a machine that has time for it.
	beyondElection = 1200 * time.Millisecond
	shortly        = time.Second
)

// last waits for as long as a fault lasts.
func (p *performance) last() {
	<-time.After(beyondElection + p.upTo(p.round.longest-beyondElection))
}

// somebody is any node.
func (p *performance) somebody() int { return 1 + p.random.IntN(p.fleet.Size()) }

// leader is the node that leads, or any if there is none.
func (p *performance) leader() int {
	leader, _ := p.fleet.Leader()
	if leader == 0 {
		return p.somebody()
	}
	return leader
}

// follower is a node that does not lead.
func (p *performance) follower() int {
	leader := p.leader()
	return 1 + (leader-1+1+p.random.IntN(max(1, p.fleet.Size()-1)))%p.fleet.Size()
}

func killLeader(p *performance) (string, []int)   { return kill(p, p.leader(), "the leader") }
func killFollower(p *performance) (string, []int) { return kill(p, p.follower(), "a follower") }

func kill(p *performance, i int, who string) (string, []int) {
	p.fleet.Kill(i)
	p.rest(shortly)
	p.start(i)
	return fmt.Sprintf("kill -9 of node %d, %s", i, who), []int{i}
}

func (p *performance) start(i int) {
	if err := p.fleet.Start(i); err != nil {
		p.Error(err)
		return
	}
	p.answers(i)
}

// answers waits until a node takes connections.
func (p *performance) answers(i int) {
	if err := p.fleet.Ready(i); err != nil {
		p.Error(err)
	}
}

func killAll(p *performance) (string, []int) {
	var all []int
	for i := 1; i <= p.fleet.Size(); i++ {
		p.fleet.Kill(i)
		all = append(all, i)
	}
	p.rest(shortly)
	for _, i := range all {
		if err := p.fleet.Start(i); err != nil {
			p.Error(err)
		}
	}
	for _, i := range all {
		p.answers(i)
	}
	return "kill -9 of all nodes", all
}

func pauseLeader(p *performance) (string, []int)   { return pause(p, p.leader(), "the leader") }
func pauseFollower(p *performance) (string, []int) { return pause(p, p.follower(), "a follower") }

func pause(p *performance, i int, who string) (string, []int) {
	p.fleet.Pause(i)
	p.last()
	p.fleet.Resume(i)
	return fmt.Sprintf("node %d, %s, stopped and woken", i, who), []int{i}
}

func stopGracefully(p *performance) (string, []int) {
	i := p.somebody()
	if err := p.fleet.Stop(i); err != nil {
		p.Errorf("node %d, asked to stop: %v", i, err)
	}
	p.start(i)
	return fmt.Sprintf("node %d stopped gracefully and started", i), []int{i}
}

func breakDisk(p *performance) (string, []int) {
	i := p.somebody()
	if err := p.fleet.BreakDisk(i); err != nil {
		p.Error(err)
	}
	p.last()
	if err := p.fleet.MendDisk(i); err != nil {
		p.Error(err)
	}
	p.start(i) // a node may end for it
	return fmt.Sprintf("the disk of node %d took nothing", i), []int{i}
}

func transfer(p *performance) (string, []int) {
	err := p.fleet.Transfer()
	return fmt.Sprintf("transfer of leadership: %v", err), nil
}

// link gives links a rule for longer than an election takes.
func (p *performance) link(what string, rule proxy.Rule, links ...proxy.Link) (string, []int) {
	p.fleet.Net.Set(rule, links...)
	p.last()
	return what, nil
}

func isolateLeader(p *performance) (string, []int) {
	i := p.leader()
	return p.link(fmt.Sprintf("node %d, the leader, alone in silence", i), proxy.Rule{Hold: true}, proxy.Apart(p.fleet.Size(), i)...)
}

func cutLeader(p *performance) (string, []int) {
	i := p.leader()
	return p.link(fmt.Sprintf("node %d, the leader, cut off with resets", i), proxy.Rule{Cut: true}, proxy.Apart(p.fleet.Size(), i)...)
}

// leaveLeaderInMinority keeps as many followers with the leader as do not make a quorum.
func leaveLeaderInMinority(p *performance) (string, []int) {
	group := []int{p.leader()}
	for i := 1; i <= p.fleet.Size() && len(group) < (p.fleet.Size()-1)/2; i++ {
		if i != group[0] {
			group = append(group, i)
		}
	}
	return p.link(fmt.Sprintf("nodes %v, the first leads, apart from the majority", group), proxy.Rule{Hold: true}, proxy.Apart(p.fleet.Size(), group...)...)
}

func muteLeader(p *performance) (string, []int) {
	i := p.leader()
	return p.link(fmt.Sprintf("node %d, the leader, hears and is not heard", i), proxy.Rule{Hold: true}, proxy.OutOf(p.fleet.Size(), i)...)
}

func deafenLeader(p *performance) (string, []int) {
	i := p.leader()
	return p.link(fmt.Sprintf("node %d, the leader, is heard and does not hear", i), proxy.Rule{Hold: true}, proxy.Into(p.fleet.Size(), i)...)
}

func deafenFollower(p *performance) (string, []int) {
	i := p.follower()
	return p.link(fmt.Sprintf("node %d, a follower, is heard and does not hear", i), proxy.Rule{Hold: true}, proxy.Into(p.fleet.Size(), i)...)
}

func breakOneLink(p *performance) (string, []int) {
	i, j := p.leader(), p.follower()
	return p.link(fmt.Sprintf("nodes %d and %d do not hear each other", i, j), proxy.Rule{Hold: true}, proxy.Between([]int{i}, []int{j})...)
}

func delayLinks(p *performance) (string, []int) {
	rule := proxy.Rule{Delay: 10 * time.Millisecond, Jitter: 60 * time.Millisecond}
	return p.link("all links 10 to 70 ms late", rule, proxy.All(p.fleet.Size())...)
}

func throttleLinks(p *performance) (string, []int) {
	return p.link("all links at 40 kB/s", proxy.Rule{Rate: 40_000}, proxy.All(p.fleet.Size())...)
}
