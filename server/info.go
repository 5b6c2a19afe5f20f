package server

import (
	"os"
	"runtime"
	rtmetrics "runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// runInfo answers INFO: all sections, or those named.
func runInfo(c *conn, args [][]byte) error {
	wanted := map[string]bool{}
	for _, a := range args[1:] {
		wanted[strings.ToLower(string(a))] = true
	}
	all := len(wanted) == 0 || wanted["all"] || wanted["everything"] || wanted["default"]
	var text strings.Builder
	for _, s := range c.server.sections() {
		if !all && !wanted[strings.ToLower(s.Name)] {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		text.WriteString("# " + s.Name + "\r\n")
		for _, f := range s.Fields {
			text.WriteString(f.Name + ":" + f.Value + "\r\n")
		}
	}
	c.out.verbatim(text.String())
	return nil
}

func (s *Server) sections() []Section {
	sections := []Section{s.aboutServer(), s.aboutClients(), aboutMemory(), aboutPersistence(), s.aboutStats(), aboutReplication(), s.aboutCluster(), s.aboutSemaphores()}
	if s.cfg.Report != nil {
		sections = append(sections, s.cfg.Report()...)
	}
	return sections
}

func (s *Server) aboutServer() Section {
	up := time.Since(s.started)
	return Section{"Server", []Field{
		{"redis_version", redisVersion},
		{"semserver_version", s.cfg.Version},
		{"semserver_ready", strconv.FormatInt(truth(s.cfg.Ready == nil || s.cfg.Ready() == nil), 10)},
		{"redis_mode", s.mode()},
		{"os", runtime.GOOS},
		{"arch_bits", strconv.Itoa(strconv.IntSize)},
		{"go_version", runtime.Version()},
		{"process_id", strconv.Itoa(os.Getpid())},
		{"run_id", s.runID},
		{"uptime_in_seconds", strconv.Itoa(int(up.Seconds()))},
		{"uptime_in_days", strconv.Itoa(int(up.Hours() / 24))},
	}}
}

func (s *Server) aboutClients() Section {
	return Section{"Clients", []Field{
		{"connected_clients", strconv.Itoa(len(s.clients()))},
		{"maxclients", strconv.Itoa(s.cfg.MaxClients)},
		{"blocked_clients", figure(s.metrics.waiting)},
	}}
}

// aboutMemory reads what the runtime counts anyway: runtime.ReadMemStats would stop the world, and
// some clients send INFO whenever they connect.
func aboutMemory() Section {
	samples := []rtmetrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	rtmetrics.Read(samples)
	used, total, released := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return Section{"Memory", []Field{
		{"used_memory", strconv.FormatUint(used, 10)},
		{"used_memory_rss", strconv.FormatUint(total-released, 10)},
		{"maxmemory", "0"},
		{"maxmemory_policy", "noeviction"},
	}}
}

func (s *Server) aboutStats() Section {
	commands := 0.0
	for _, c := range s.metrics.commands {
		commands += value(c)
	}
	return Section{"Stats", []Field{
		{"total_connections_received", strconv.FormatUint(s.ids.Load(), 10)},
		{"total_commands_processed", strconv.FormatFloat(commands, 'f', 0, 64)},
		{"rejected_connections", figure(s.metrics.turnedAway)},
	}}
}

// aboutPersistence says what clients wait for before they send anything: nothing is being loaded.
func aboutPersistence() Section { return Section{"Persistence", []Field{{"loading", "0"}}} }

func aboutReplication() Section {
	return Section{"Replication", []Field{{"role", "master"}, {"connected_slaves", "0"}}}
}

// mode is what kind of Redis clients are told that this is.
func (s *Server) mode() string {
	if s.cfg.ClusterCommands {
		return "cluster"
	}
	return "standalone"
}

func (s *Server) aboutCluster() Section {
	return Section{"Cluster", []Field{{"cluster_enabled", strconv.FormatInt(truth(s.cfg.ClusterCommands), 10)}}}
}

func (s *Server) aboutSemaphores() Section {
	m, l := s.metrics, s.cfg.Limits
	return Section{"Semaphores", []Field{
		{"grants_immediate", figure(m.immediate)},
		{"grants_waited", figure(m.late)},
		{"grants_replayed", figure(m.replayed)},
		{"grants_given_back", figure(m.givenBack)},
		{"releases", figure(m.releases)},
		{"renewals", figure(m.renewals)},
		{"hangups_while_waiting", figure(m.hangups)},
		{"default_lease_ms", strconv.FormatInt(l.DefaultLease.Milliseconds(), 10)},
		{"default_idle_ms", strconv.FormatInt(l.DefaultIdle.Milliseconds(), 10)},
		{"max_lease_ms", strconv.FormatInt(s.cfg.MaxLease.Milliseconds(), 10)},
		{"max_wait_ms", strconv.FormatInt(s.cfg.MaxWait.Milliseconds(), 10)},
		{"max_waiters", strconv.Itoa(l.MaxWaiters)},
		{"max_waiters_all", strconv.Itoa(l.MaxWaitersAll)},
		{"max_semaphores", strconv.Itoa(l.MaxSemaphores)},
	}}
}

// value reads a counter or gauge.
func value(m prometheus.Metric) float64 {
	var d dto.Metric
	if m.Write(&d) != nil {
		return 0
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func figure(m prometheus.Metric) string { return strconv.FormatFloat(value(m), 'f', 0, 64) }
