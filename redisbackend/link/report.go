package link

import "strconv"

// Figure is one line of a report.
type Figure struct{ Name, Value string }

// Report says how the Link is doing, for people and monitoring. It may be called at any time.
func (l *Link) Report() []Figure {
	state := "up"
	if err := l.Ready(); err != nil {
		state = oneLine(err)
	}
	figures := []Figure{
		{"redisbackend_mode", string(l.options.Target.Mode)},
		{"redisbackend_state", state},
	}
	nodes, version := l.fleet.nodes(), ""
	lanes := 0
	for _, n := range nodes {
		n.mu.Lock()
		lanes += n.lanes
		if version == "" {
			version = n.facts.version
		}
		n.mu.Unlock()
	}
	counters := []struct {
		name  string
		value int64
	}{
		{"redisbackend_servers", int64(len(nodes))},
		{"redisbackend_lanes", int64(lanes)},
		{"redisbackend_calls", l.counters.calls.Load()},
		{"redisbackend_batches", l.counters.batches.Load()},
		{"redisbackend_calls_down", l.counters.down.Load()},
		{"redisbackend_calls_refused", l.counters.refused.Load()},
		{"redisbackend_calls_unknown", l.counters.unknown.Load()},
		{"redisbackend_calls_unreplicated", l.counters.unreplicated.Load()},
	}
	figures = append(figures, Figure{"redisbackend_server_version", version})
	for _, c := range counters {
		figures = append(figures, Figure{c.name, strconv.FormatInt(c.value, 10)})
	}
	return figures
}
