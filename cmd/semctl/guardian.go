//go:build unix

package main

import "github.com/semserver/semserver/cmd/semctl/internal/job"

// guardianCommand is the process that kills a command whose semctl run was killed.
type guardianCommand struct{}

// Run returns when it has done so, or is dismissed.
func (*guardianCommand) Run(s *session) error {
	job.Guard(s.stdin)
	return nil
}
