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
		{"redis_deployment", string(l.options.Target.Mode)},
		{"redis_state", state},
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
		{"redis_servers", int64(len(nodes))},
		{"redis_lanes", int64(lanes)},
		{"redis_calls", l.counters.calls.Load()},
		{"redis_batches", l.counters.batches.Load()},
		{"redis_calls_down", l.counters.down.Load()},
		{"redis_calls_refused", l.counters.refused.Load()},
		{"redis_calls_unknown", l.counters.unknown.Load()},
		{"redis_calls_unreplicated", l.counters.unreplicated.Load()},
	}
	figures = append(figures, Figure{"redis_server_version", version})
	for _, c := range counters {
		figures = append(figures, Figure{c.name, strconv.FormatInt(c.value, 10)})
	}
	return figures
}
