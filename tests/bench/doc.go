// Command bench measures a semserver against its speed targets, beside a Redis on the same machine.
//
// It starts everything itself: its own binary, redis-server twice (every write fsynced; nothing on
// disk), semctl bench as the load on both; all on loopback, with data in temporary folders. Both
// sides are measured in turn, the medians of several rounds are compared, and what is quoted is the
// ratio: absolute figures of a shared machine move by a third from run to run.
//
// It prints a table with each target and whether it was met. Being slow is no error: the exit status
// is 0 unless something could not be measured at all.
package main
