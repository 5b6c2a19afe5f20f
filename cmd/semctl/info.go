package main

import (
	"context"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type infoCommand struct{ keyArgument }

func (c *infoCommand) Run(ctx context.Context, s *session) error {
	reply, err := s.ask(ctx, remote.Question("SEM.INFO", c.Name))
	if err != nil {
		return err
	}
	info, err := remote.ReadFields(reply.Value)
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(fieldsObject(info))
	}
	return s.printTable(infoTable(info))
}

// figure says how a field of SEM.INFO is shown to people.
type figure struct {
	field, label string
	show         func(n int64) string
	always       bool // also when it is 0
}

// infoFigures are the fields in the order in which they are shown.
func infoFigures() []figure {
	return []figure{
		{"capacity", "capacity", number, true},
		{"in_use", "in use", number, true},
		{"available", "available", number, true},
		{"excess", "held beyond the capacity", number, false},
		{"quarantined", "in quarantine", number, false},
		{"missing", "missing in the books", number, false},
		{"surplus", "too many in the books", number, false},
		{"rows", "slot rows needed", number, true},
		{"holders", "holders", number, true},
		{"waiters", "waiters", number, true},
		{"orphans", "waiters of a lost node", number, false},
		{"oldest_wait_ms", "oldest wait", showMillis, false},
		{"next_expiry_ms", "next lease ends in", showMillis, true},
		{"last_token", "last token", number, true},
		{"lease", "lease", showSetting, true},
		{"maxlease", "longest lease", showSetting, true},
		{"maxhold", "longest hold", showSetting, true},
		{"quarantine", "quarantine", showSetting, true},
		{"idle", "removed when idle for", showSetting, true},
		{"grants_immediate", "grants at once", number, true},
		{"grants_waited", "grants after a wait", number, true},
		{"refused", "refused without a wait", number, true},
		{"wait_timeouts", "waits without a grant", number, true},
		{"wait_ms_total", "time waited in all", showMillis, true},
		{"releases", "releases", number, true},
		{"renewals", "renewals", number, true},
		{"expirations", "leases that ended while held", number, true},
		{"reconciled", "permits reconciled", number, false},
		{"held_ms_total", "time held in all", showMillis, true},
	}
}

func infoTable(info remote.Fields) table {
	var t table
	t.add("name", visible(info.Text("name")))
	for _, f := range infoFigures() {
		if n := info.Number(f.field); n != 0 || f.always {
			t.add(f.label, f.show(n))
		}
	}
	return t
}

func showMillis(n int64) string {
	if n < 0 {
		return "-"
	}
	return span(ms(n))
}

func showSetting(n int64) string {
	if n < 0 {
		return "not set"
	}
	return span(ms(n))
}
