// Package history keeps what clients asked a cluster, what they were told, and when; and what was done
// to the cluster meanwhile. It says nothing of whether that was right: package check does.
//
// Times are read from the monotonic clock of one process and count from the beginning of the history.
// The request took effect, if it did, between its call and its return.
//
// To record a further command, add a Kind, and what its reply says to Result.
package history
