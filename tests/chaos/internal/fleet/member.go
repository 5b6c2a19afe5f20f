package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// member is one node, over all its lives.
type member struct {
	binary, addr, data string
	flags              []string
	process            *node.Node // nil before the first life
	paused             bool
	diskBroke          bool   // in some life
	past               string // logs of former lives
}

func (m *member) up() bool {
	if m.process == nil {
		return false
	}
	select {
	case <-m.process.Exited():
		return false
	default:
		return true
	}
}

// Start gives node i a life on its data directory, if it has none, and does not wait for it.
func (f *Fleet) Start(i int) error {
	m := f.members[i-1]
	if m.up() {
		return nil
	}
	m.bury()
	process, err := node.Launch(m.binary, m.addr, m.data, m.flags...)
	if err != nil {
		return fmt.Errorf("node %d: %w", i, err)
	}
	m.process = process
	return nil
}

// bury keeps the log of a life that has ended.
func (m *member) bury() {
	if m.process != nil {
		m.past += m.process.Log() + "--- the end of this process\n"
	}
	m.process, m.paused = nil, false
}

// Kill ends node i as kill -9 does.
func (f *Fleet) Kill(i int) { f.members[i-1].kill() }

func (m *member) kill() {
	if m.up() {
		m.process.Kill()
	}
}

// Stop asks node i to end, and waits. It returns the exit status as an error when that is not 0.
func (f *Fleet) Stop(i int) error {
	f.Resume(i)
	if m := f.members[i-1]; m.up() {
		return m.process.Stop()
	}
	return nil
}

// Pause stops all threads of node i (SIGSTOP) until Resume. When it returns, none of them runs.
func (f *Fleet) Pause(i int) {
	m := f.members[i-1]
	if !m.up() {
		return
	}
	m.paused = m.process.Process.Signal(syscall.SIGSTOP) == nil
	for m.up() && m.running() {
		<-time.After(pollEvery)
	}
}

// running is whether a thread of the node runs, or may.
func (m *member) running() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.process.Process.Pid))
	for _, name := range threads {
		stat, err := os.ReadFile(name)
		// The state follows the command's name, which is in brackets. T: stopped.
		if err == nil && !bytes.Contains(stat, []byte(") T ")) {
			return true
		}
	}
	return false
}

// Resume lets node i go on.
func (f *Fleet) Resume(i int) {
	m := f.members[i-1]
	if m.up() && m.paused {
		_ = m.process.Process.Signal(syscall.SIGCONT) // fails only for one that has ended
	}
	m.paused = false
}

// BreakDisk makes every write of node i to a file fail.
func (f *Fleet) BreakDisk(i int) error {
	f.members[i-1].diskBroke = true
	return f.members[i-1].limitFiles(0)
}

// MendDisk lets node i write again.
func (f *Fleet) MendDisk(i int) error { return f.members[i-1].limitFiles(unix.RLIM_INFINITY) }

func (m *member) limitFiles(size uint64) error {
	if !m.up() {
		return nil // the next life starts without a limit
	}
	limit := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(m.process.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		return fmt.Errorf("limit the size of files: %w", err)
	}
	return nil
}

// Transfer asks the leader to hand over, and returns its refusal as an error.
func (f *Fleet) Transfer() error {
	leader, _ := f.Leader()
	if leader == 0 {
		return fmt.Errorf("nobody leads")
	}
	c, err := resp.Dial(f.Addr(leader))
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := c.Do("SEM.NODE", "TRANSFER")
	if refused, ok := reply.(resp.Error); ok && err == nil {
		return refused
	}
	return err
}

// cannotVote is how Raft ends a process that cannot write down its term: to go on might be to vote twice.
const cannotVote = "panic: failed to save current term"

// sound checks that the node has complained of no fault of its own, in any of its lives.
func (m *member) sound() error {
	log := m.logged()
	if m.diskBroke {
		log = strings.ReplaceAll(log, cannotVote, "")
	}
	for _, fault := range []string{"DATA RACE", "panic:", "goroutine 1 ["} {
		if i := strings.Index(log, fault); i >= 0 {
			return fmt.Errorf("its log contains %q:\n%s", fault, log[max(0, i-500):min(len(log), i+4000)])
		}
	}
	return nil
}

func (m *member) logged() string {
	if m.process == nil {
		return m.past
	}
	return m.past + m.process.Log()
}

func (m *member) tail(lines int) string {
	all := strings.SplitAfter(m.logged(), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// Ready waits until node i, which has been started, takes connections.
func (f *Fleet) Ready(i int) error {
	m := f.members[i-1]
	if m.process == nil {
		return fmt.Errorf("node %d was not started", i)
	}
	return m.process.Ready()
}
