// Package node builds the semserver binary and runs it, for tests and measurements that see it from
// outside only.
package node

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyTimeout is how long a node may take to start, or to stop when it is asked to.
const readyTimeout = 60 * time.Second

// Node is a running semserver.
type Node struct {
	Addr    string // where clients connect; read it once the node is ready
	Process *os.Process

	command *exec.Cmd
	ready   chan struct{}
	exited  chan struct{}
	exit    error // how it ended; read it after exited is closed

	mu  sync.Mutex
	log strings.Builder
}

// Build compiles the binary into a folder and returns its path. Flags go to go build.
func Build(folder string, flags ...string) (string, error) {
	binary := filepath.Join(folder, "semserver")
	args := append([]string{"build", "-o", binary}, flags...)
	out, err := exec.Command("go", append(args, "github.com/semserver/semserver/cmd/semserver")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build semserver: %w\n%s", err, out)
	}
	return binary, nil
}

// Start runs the binary on a data directory and returns once it is ready for clients. An addr with
// port 0 lets it choose; flags are added to its command line. Without a data directory they say which
// Redis keeps the semaphores.
func Start(binary, addr, data string, flags ...string) (*Node, error) {
	n, err := Launch(binary, addr, data, flags...)
	if err != nil {
		return nil, err
	}
	return n, n.Ready()
}

// Launch is Start without the wait, which [Node.Ready] is for.
func Launch(binary, addr, data string, flags ...string) (*Node, error) {
	n := &Node{ready: make(chan struct{}), exited: make(chan struct{})}
	args := []string{"--listen", addr, "--http", "127.0.0.1:0", "--log-format", "json"}
	if data != "" {
		args = append(args, "--data-dir", data)
	}
	n.command = exec.Command(binary, append(args, flags...)...)
	stderr, err := n.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start semserver: %w", err)
	}
	if err := n.command.Start(); err != nil {
		return nil, fmt.Errorf("start semserver: %w", err)
	}
	n.Process = n.command.Process
	go n.follow(stderr)
	return n, nil
}

// Ready waits until a node that was launched serves clients. One that does not is killed.
func (n *Node) Ready() error {
	select {
	case <-n.ready:
		return nil
	case <-n.exited:
		return fmt.Errorf("semserver ended before it was ready: %w\n%s", n.exit, n.Log())
	case <-time.After(readyTimeout):
		n.Kill()
		return fmt.Errorf("semserver was not ready within %v\n%s", readyTimeout, n.Log())
	}
}

// follow reads the log to its end, which is the end of the process.
func (n *Node) follow(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		n.mu.Lock()
		n.log.WriteString(lines.Text() + "\n")
		n.mu.Unlock()
		var line struct{ Msg, Listen string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" && n.Addr == "" {
			n.Addr = line.Listen
			close(n.ready)
		}
	}
	n.exit = n.command.Wait()
	close(n.exited)
}

// Log is what the node has written so far.
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// Kill ends the process without warning, as kill -9, and waits for its end.
func (n *Node) Kill() {
	// An error means that it has ended already.
	_ = n.Process.Kill()
	<-n.exited
}

// Stop asks the process to end and returns its exit status as an error when that is not 0.
func (n *Node) Stop() error {
	// An error means that it has ended already, which exit tells.
	_ = n.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.exited:
		return n.exit
	case <-time.After(readyTimeout):
		n.Kill()
		return fmt.Errorf("semserver did not stop within %v\n%s", readyTimeout, n.Log())
	}
}

// Exited is closed when the process has ended.
func (n *Node) Exited() <-chan struct{} { return n.exited }

// Resident is the memory that the process occupies now, in bytes.
func (n *Node) Resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory use: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if k, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); k == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("read memory use: no VmRSS")
}
