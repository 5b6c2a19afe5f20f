//go:build unix

package job

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// dismissal is what the guardian reads when it has nothing more to do.
const dismissal = "done"

// guardian is a process that does what we cannot: it kills the job when we were killed. It is told of our
// death by the end of a pipe, of which only we have the other end.
type guardian struct{ pipe *os.File }

// summon starts the guardian: argv is a program that calls Guard on its input. The error is for who wants
// to know; the job can do without.
func summon(argv []string) (*guardian, error) {
	if len(argv) == 0 {
		return nil, nil
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("summon guardian: %w", err)
	}
	defer func() { _ = in.Close() }() // the guardian has it
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("summon guardian: %w", err)
	}
	defer func() { _ = null.Close() }()
	_, err = syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Files: []uintptr{in.Fd(), null.Fd(), null.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // what is sent to our group or terminal is not for it
	})
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("summon guardian: %w", err)
	}
	return &guardian{out}, nil
}

// watch names the process group to be killed. That the guardian is gone is borne.
func (g *guardian) watch(group int) {
	if g != nil {
		_, _ = fmt.Fprintln(g.pipe, group)
	}
}

// dismiss lets the guardian end.
func (g *guardian) dismiss() {
	if g != nil {
		_, _ = fmt.Fprintln(g.pipe, dismissal)
		_ = g.pipe.Close()
	}
}

// Guard is all that a guardian does: it reads of a process group, and kills it when the input ends without
// a dismissal.
func Guard(in io.Reader) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return
	}
	group, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
	if err != nil || group <= 1 {
		return
	}
	if lines.Scan() && lines.Text() == dismissal {
		return
	}
	_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended by itself
}
