package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// act is 121 pods, from the start to the end of the last.
type act struct {
	guard  []string // what stands before the command of a pod; none: nothing
	deadly bool     // every third pod is killed when it first loads, and started again

	database *database
	gate     *os.File // the pods' input; its end is the start

	mu      sync.Mutex
	running map[string]*exec.Cmd
	killed  map[string]bool
}

// outcome is what came of an act.
type outcome struct {
	loaded, failed int
	killed         int
	most           int // that loaded at a time
}

// run plays the act.
func (a *act) run(ctx context.Context, pods int) (outcome, error) {
	a.running, a.killed = map[string]*exec.Cmd{}, map[string]bool{}
	var err error
	if a.database, err = openDatabase(a.began); err != nil {
		return outcome{}, fmt.Errorf("open the database: %w", err)
	}
	defer a.database.close()
	gate, start, err := os.Pipe()
	if err != nil {
		return outcome{}, err
	}
	defer gate.Close()
	a.gate = gate

	results := make(chan error, pods)
	var started sync.WaitGroup
	for i := range pods {
		started.Add(1)
		go func() { results <- a.pod(ctx, strconv.Itoa(i), started.Done) }()
	}
	started.Wait()
	start.Close()

	var o outcome
	for range pods {
		err := <-results
		var exit *exec.ExitError
		switch {
		case err == nil:
			o.loaded++
		case errors.As(err, &exit):
			o.failed++
		default:
			return o, err
		}
	}
	o.most, o.killed = a.database.looked(), len(a.killed)
	return o, nil
}

// pod runs a pod until it has loaded or failed. One that was killed is started again.
func (a *act) pod(ctx context.Context, name string, started func()) error {
	for {
		c, err := a.start(ctx, name)
		started()
		if err != nil {
			return err
		}
		started = func() {}
		err = c.Wait()
		if !a.wasKilled(name, c) {
			return err
		}
	}
}

func (a *act) start(ctx context.Context, name string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append(a.guard[:len(a.guard):len(a.guard)], self, "-database", a.database.addr, "-pod", name)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stdin = a.gate
	if err := c.Start(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[name] = c
	return c, nil
}

// began kills every third pod in the middle of its first load, with what guards it, as a machine that
// dies would.
func (a *act) began(name string) {
	number, err := strconv.Atoi(name)
	if err != nil || !a.deadly || number%3 != 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.killed[name] {
		a.killed[name] = true
		_ = a.running[name].Process.Kill() // it runs: it has just asked for rows
	}
}

// wasKilled says whether this process is the one that was killed, and not the one that was started in its
// place.
func (a *act) wasKilled(name string, c *exec.Cmd) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.killed[name] && !c.ProcessState.Exited()
}
