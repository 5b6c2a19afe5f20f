// Package load is the clients of a fault test. Each works through one attempt after another, every one
// under a holder's id of its own: acquire, at once or in line; hold, look, renew, ask again; release,
// once or twice, or leave it to the lease. It does what the documentation asks of clients: who waited
// renews before it relies on the lease; who was not answered asks again with the same holder, at
// another node, or cancels and releases.
//
// Every request and its answer goes into a history. Watchers look at lines, books and leaders meanwhile.
//
// To add a thing that clients do, add a method to attempt.go, and let hold or begin choose it.
package load
