package proxy

import (
	"slices"
	"time"
)

// Link is one direction between two nodes, which are counted from 1.
type Link struct{ From, To int }

// Rule says what becomes of the bytes on a link. The zero Rule lets them pass.
type Rule struct {
	// Cut refuses connections that From dials to To, and resets those there are.
	Cut bool
	// Hold keeps bytes until the rule changes. Nobody is told: connections are accepted, and the end of
	// one is held like a byte.
	Hold bool
	// Delay is how late bytes arrive, and Jitter how much later still they may, at random.
	Delay, Jitter time.Duration
	// Rate is how many bytes pass in a second; 0: any number.
	Rate int
}

// Between are the links between two groups of nodes, in both directions.
func Between(a, b []int) []Link {
	var all []Link
	for _, i := range a {
		for _, j := range b {
			all = append(all, Link{i, j}, Link{j, i})
		}
	}
	return all
}

// Apart are the links between a group and the rest of n nodes, in both directions.
func Apart(n int, group ...int) []Link {
	return Between(group, rest(n, group))
}

// OutOf are the links from node i to the other nodes.
func OutOf(n, i int) []Link {
	var all []Link
	for _, j := range rest(n, []int{i}) {
		all = append(all, Link{i, j})
	}
	return all
}

// Into are the links to node i from the other nodes.
func Into(n, i int) []Link {
	var all []Link
	for _, j := range rest(n, []int{i}) {
		all = append(all, Link{j, i})
	}
	return all
}

// All are the links between n nodes.
func All(n int) []Link {
	var all []Link
	for i := 1; i <= n; i++ {
		all = append(all, OutOf(n, i)...)
	}
	return all
}

func rest(n int, group []int) []int {
	var others []int
	for i := 1; i <= n; i++ {
		if !slices.Contains(group, i) {
			others = append(others, i)
		}
	}
	return others
}
