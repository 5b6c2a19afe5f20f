// Package chaos runs clusters of real processes, breaks them on purpose while clients are at work, and
// checks the history of what the clients were told.
//
//	fleet     starts the nodes, and kills, stops and resumes them, or breaks their disks
//	proxy     is the network between the nodes, and fails on demand
//	load      is the clients
//	history   is what they asked and were told, and what was done to the cluster
//	check     says whether that keeps the promises
//
// A round (round_test.go) is one cluster under one schedule of faults (faults_test.go), drawn from a
// seed that is printed. The seed fixes which faults come, when, to which role of node, and what each client
// wants; it cannot fix how processes and networks interleave, so the same seed may need several runs to
// show the same fault again.
//
// Rounds with fixed seeds run with all other tests (rounds_test.go). In the environment
// SEMSERVER_CHAOS_TIME=10m makes the long run go on for so long, on SEMSERVER_CHAOS_NODES=1, 3 or 5
// nodes, from SEMSERVER_CHAOS_SEED if it is set; SEMSERVER_CHAOS_RACE=1 builds the server with the race
// detector. With -artifacts the history of a round that failed is kept.
//
// Promises that random faults meet too seldom have tests of their own: leader_test.go, quorum_test.go,
// restart_test.go, log_test.go, line_test.go.
//
// To add a fault, add it to faults_test.go, and name it in a round.
package chaos
