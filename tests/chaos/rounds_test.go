package chaos

import (
	"fmt"
	"testing"
	"time"
)

// brief is the length of the rounds that run with all other tests.
const brief = 7 * time.Second

func TestPromisesHoldOnOneNode(t *testing.T) {
	for name, faults := range map[string][]fault{
		"killed and stopped":          {killLeader, pauseLeader},
		"restarted, and without disk": {stopGracefully, breakDisk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, round{nodes: 1, seed: number(t, seedVariable, 1), length: brief, faults: faults})
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
	const each = 20 * time.Second
	nodes := int(number(t, nodesVariable, 1))
	total := length(t, timeVariable, brief)
	seed := number(t, seedVariable, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d repeats it", seedVariable, seed)
	for began := time.Now(); time.Since(began) < total; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			play(t, round{nodes: nodes, seed: seed, length: min(each, total), faults: faultsOf(nodes)})
		})
	}
}
