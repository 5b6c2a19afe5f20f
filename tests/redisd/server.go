package redisd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

const (
	// patience is how long a server may take to start, to stop or to answer.
	patience = 60 * time.Second
	// pollEvery is how often a condition is looked at.
	pollEvery = 10 * time.Millisecond
)

// Durable are the settings of a server that acknowledges nothing before it is on disk.
func Durable() []string { return []string{"--appendonly", "yes", "--appendfsync", "always"} }

// Server is a redis-server. It may be killed and started again; it keeps its address and its folder.
// Its methods are for one goroutine at a time.
type Server struct {
	Addr string // host:port
	Dir  string // its data

	args []string // of the command line
	life *life    // the process, nil before the first
}

// life is one process.
type life struct {
	process *os.Process
	ready   chan struct{}
	exited  chan struct{}
	exit    error // read it after exited is closed

	mu  sync.Mutex
	log strings.Builder
}

// New describes a server on a free address that keeps its data in a new folder within dir. Settings are
// those of redis-server's command line: "--maxmemory", "10mb".
func New(dir string, settings ...string) (*Server, error) {
	s := &Server{Addr: FreeAddr()}
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil, fmt.Errorf("describe redis-server: %w", err)
	}
	s.Dir = filepath.Join(dir, port)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("describe redis-server: %w", err)
	}
	s.args = append([]string{
		"--bind", host, "--bind-source-addr", host, "--port", port, "--protected-mode", "no",
		"--dir", s.Dir, "--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
	}, settings...)
	return s, nil
}

// Run starts a server for the length of the test.
func Run(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Start runs the server and returns once it accepts connections and has loaded its data.
func (s *Server) Start() error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.Ready()
}

// Launch is Start without the wait, which [Server.Ready] is for.
func (s *Server) Launch() error {
	if s.life != nil {
		return errors.New("start redis-server: it has been started")
	}
	l := &life{ready: make(chan struct{}), exited: make(chan struct{})}
	started := make(chan error, 1)
	go l.run(s.args, started)
	if err := <-started; err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	s.life = l
	return nil
}

// run starts a process and stays with it to its end. It keeps its thread, whose end would be the end of
// the process too.
func (l *life) run(args []string, started chan<- error) {
	runtime.LockOSThread()
	command := exec.Command("redis-server", args...)
	command.SysProcAttr = withParent()
	out, err := command.StdoutPipe()
	if err == nil {
		command.Stderr = command.Stdout
		err = command.Start()
	}
	if err != nil {
		started <- err
		return
	}
	l.process = command.Process
	started <- nil
	l.follow(out)
	l.exit = command.Wait()
	close(l.exited)
}

// follow reads the log to its end, which is the end of the process.
func (l *life) follow(out io.Reader) {
	open := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		l.mu.Lock()
		l.log.WriteString(lines.Text() + "\n")
		l.mu.Unlock()
		if ready := strings.Contains(lines.Text(), "Ready to accept connections") || strings.Contains(lines.Text(), "Sentinel ID is"); ready && !open {
			open = true
			close(l.ready)
		}
	}
}

// Ready waits until a server that was launched serves clients. One that does not is killed.
func (s *Server) Ready() error {
	l := s.life
	select {
	case <-l.ready:
		return nil
	case <-l.exited:
		return fmt.Errorf("redis-server ended before it was ready: %w\n%s", l.exit, s.Log())
	case <-time.After(patience):
		log := s.Log()
		s.Kill()
		return fmt.Errorf("redis-server was not ready within %v\n%s", patience, log)
	}
}

// Log is what the present or last process has written so far.
func (s *Server) Log() string {
	if s.life == nil {
		return ""
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.life.log.String()
}

// Kill ends the process without warning, as kill -9, and waits for its end. It may be called again.
func (s *Server) Kill() {
	if s.life == nil {
		return
	}
	// An error means that it has ended already.
	_ = s.life.process.Kill()
	<-s.life.exited
	s.life = nil
}

// Stop asks the process to end and waits for it; replicas and disk are brought up to date first.
func (s *Server) Stop() error {
	if s.life == nil {
		return nil
	}
	_ = s.life.process.Signal(syscall.SIGTERM)
	select {
	case <-s.life.exited:
	case <-time.After(patience):
		log := s.Log()
		s.Kill()
		return fmt.Errorf("redis-server did not stop within %v\n%s", patience, log)
	}
	s.life = nil
	return nil
}

// Restart kills the process, if it runs, and starts another with what is on disk.
func (s *Server) Restart() error {
	s.Kill()
	return s.Start()
}

// RestartEmpty is Restart after a loss of everything on disk.
func (s *Server) RestartEmpty() error {
	s.Kill()
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("empty the folder of redis-server: %w", err)
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return fmt.Errorf("empty the folder of redis-server: %w", err)
	}
	return s.Start()
}

// Pause stops the process in its tracks: connections stay, and nobody answers. Resume lets it go on.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume ends what Pause began.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(what syscall.Signal) error {
	if s.life == nil {
		return errors.New("signal redis-server: it does not run")
	}
	return s.life.process.Signal(what)
}

// Pid is the id of the process, 0 while there is none.
func (s *Server) Pid() int {
	if s.life == nil {
		return 0
	}
	return s.life.process.Pid
}

// Do sends one command over a connection of its own and returns the reply: nil, an int64, a string or a
// []any of these. An error reply is the error.
func (s *Server) Do(args ...any) (any, error) {
	c, err := resp.Dial(s.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, err := c.Do(args...)
	if refusal, ok := reply.(resp.Error); ok {
		return nil, refusal
	}
	if status, ok := reply.(resp.Simple); ok {
		return string(status), err
	}
	return reply, err
}

// Field is one field of INFO, empty where it is not there or the server does not answer.
func (s *Server) Field(name string) string {
	text, err := s.Do("INFO", "all")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(fmt.Sprint(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// until waits for a condition.
func until(what string, holds func() bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pollEvery) {
		if holds() {
			return nil
		}
	}
	return fmt.Errorf("%s: not within %v", what, patience)
}
