package main

import "time"

// guardCommand is "semctl run".
type guardCommand struct {
	Sem           string        `required:"" placeholder:"NAME" complete:"semaphore" help:"Semaphore to get a permit of."`
	Capacity      *int64        `placeholder:"N" help:"Create the semaphore with this capacity if there is none."`
	Permits       int64         `default:"1" placeholder:"N" help:"How many, all or none (default: ${default})."`
	Wait          time.Duration `default:"5m" placeholder:"TIME" help:"How long to wait in line (default: ${default})."`
	Try           bool          `help:"Do not wait: run now or not at all."`
	Lease         time.Duration `default:"30s" placeholder:"TIME" help:"How long others wait if this machine dies. It is renewed while the command runs (default: ${default})."`
	OnLost        string        `default:"kill" enum:"kill,signal,keep" placeholder:"WHAT" help:"When the permit is about to be lost: kill (ask the command to end, kill it before the lease is over), signal (ask only), keep (do nothing) (default: ${default})."`
	Signal        string        `default:"TERM" placeholder:"NAME" help:"What asks the command to end (default: ${default})."`
	Grace         time.Duration `default:"0s" placeholder:"TIME" help:"How long before the kill it is asked (default: a sixth of the lease, at most 10s)."`
	OnUnavailable string        `default:"fail" enum:"fail,run" placeholder:"WHAT" help:"When no server can be reached: fail, or run without a permit (default: ${default})."`
	Holder        string        `placeholder:"ID" help:"Id to hold under (default: a fresh one)."`
	Fresh         bool          `help:"With --holder: fence off who held under that id before."`
	Label         string        `placeholder:"TEXT" help:"What listings show (default: the command's name)."`
	Keep          bool          `help:"Run no command: print the permit, as variables for a shell, and leave it to another process to release."`
	Persist       bool          `help:"With --keep: a permit without end."`
	Quiet         bool          `short:"q" help:"Say nothing but what goes wrong: neither who holds nor that there was no permit in time."`

	Command []string `arg:"" optional:"" passthrough:"" help:"Command to run, and its arguments."`
}

// Help is printed below the summary.
func (*guardCommand) Help() string {
	return `Waits in line, runs the command in a process group of its own with SEM_NAME, SEM_HOLDER, SEM_TOKEN, SEM_SLOT and SEM_SLOTS in its environment, passes on signals, and gives the permit back however the command ends. What the command leaves running in its group is ended too.

Exit status: that of the command, or 128 and the number of the signal that killed it. 75: no permit in time. 69: no server. 76: the permit was lost and the command ended for it. 126, 127: it cannot be run, or not found. 64: wrong command line; 1: the server refused.

With --json, what is said on stderr are JSON objects, one a line.`
}
