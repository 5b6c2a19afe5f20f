package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

const (
	// brief is the length of the rounds that run with all other tests, and longestBrief of faults in them.
	brief, longestBrief = 8 * time.Second, 2 * time.Second
	// roundOfMany is the length of each round of the long run. The longest faults outlast the grace of
	// waiters.
	roundOfMany, longestOfMany = 30 * time.Second, 9 * time.Second
)

func TestPromisesHoldOnOneNode(t *testing.T) {
	for name, faults := range map[string][]fault{
		"killed and stopped":          {killLeader, pauseLeader},
		"restarted, and without disk": {stopGracefully, breakDisk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, round{nodes: 1, seed: trial.Number(t, seedVariable, 1), length: brief, longest: longestBrief, faults: faults})
		})
	}
}

// faultsOf are those that make sense with so many nodes. What is named twice is twice as likely.
func faultsOf(nodes int) []fault {
	if nodes == 1 {
		return []fault{killLeader, pauseLeader, stopGracefully, breakDisk}
	}
	return []fault{
		killLeader, killFollower, killAll, pauseLeader, pauseFollower, stopGracefully, breakDisk, transfer, transfer,
		isolateLeader, cutLeader, leaveLeaderInMinority, muteLeader, deafenLeader, deafenFollower, breakOneLink,
		delayLinks, throttleLinks,
	}
}

// TestPromisesHoldInTheLongRun plays rounds of any faults, one after another, for as long as the
// environment says; without that, a short one on one node.
func TestPromisesHoldInTheLongRun(t *testing.T) {
	t.Parallel()
	nodes := int(trial.Number(t, nodesVariable, 1))
	total := length(t, timeVariable, brief)
	seed := trial.Number(t, seedVariable, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d repeats it", seedVariable, seed)
	for began := time.Now(); time.Since(began) < total; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			play(t, round{nodes: nodes, seed: seed, length: min(roundOfMany, total), longest: min(longestOfMany, total), faults: faultsOf(nodes)})
		})
	}
}

func TestPromisesHoldInACluster(t *testing.T) {
	for _, r := range []struct {
		name   string
		nodes  int
		faults []fault
		flags  []string
	}{
		{"nodes that end", 3, []fault{killLeader, killFollower, killAll, stopGracefully}, []string{"--log-store", "boltdb"}},
		{"nodes that stop, and disks that fail", 3, []fault{pauseLeader, pauseFollower, breakDisk}, nil},
		{"partitions", 3, []fault{isolateLeader, cutLeader, breakOneLink, transfer}, nil},
		{"one-way partitions", 3, []fault{muteLeader, deafenLeader, deafenFollower}, nil},
		{"slow links", 3, []fault{delayLinks, throttleLinks, transfer, transfer}, nil},
		{"anything to five nodes", 5, faultsOf(5), nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			play(t, round{nodes: r.nodes, seed: trial.Number(t, seedVariable, 1), length: brief, longest: longestBrief, faults: r.faults, flags: r.flags})
		})
	}
}
