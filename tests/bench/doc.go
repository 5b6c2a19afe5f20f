// Command bench measures a semserver against its speed targets, beside a Redis and an etcd on the same
// machine.
//
// It starts everything itself: its own binary, as one node, as three, and before a Redis; redis-server twice
// (every write fsynced; nothing on disk); an etcd of three nodes; all on loopback, with data in temporary
// folders. The
// load on semserver and Redis is semctl bench. The load on etcd is the program in etcd/, a module of its
// own with etcd's Go client: as many clients, at the same places, each with a connection and a lock of its
// own. Both sides are measured in turn, the medians of several rounds are compared, and what is quoted is
// the ratio: absolute figures of a shared machine move by a third from run to run. Three nodes share the
// processors and the disk of this one machine, which is harder on them than three machines are.
//
// Redis mode is compared with the simplest script of its kind, sent straight to the same Redis: what
// semserver adds is one more program on the way, and what it saves is calls.
//
// It prints a table with each target and whether it was met. Being slow is no error: the exit status
// is 0 unless something could not be measured at all.
//
// To add a measurement, write a function in a file of its own and edit measurements in main.go.
package main
