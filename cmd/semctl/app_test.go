package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// call runs the program without a process or a server.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	env := environment{"SEMCTL_ADDR=127.0.0.1:1", "SEMCTL_TIMEOUT=10ms"}
	status = run(t.Context(), args, process{stdin: strings.NewReader(""), stdout: &out, stderr: &complaints, env: env})
	return status, out.String(), complaints.String()
}

func TestPagesArePrintedWithoutAServer(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"-h"}, {"--version"}, {"acquire", "-h"}, {"node", "--help"}, {"completion", "zsh"}} {
		if status, out, complaint := call(t, args...); status != exitOK || out == "" || complaint != "" {
			t.Errorf("%q: got %d, %q, %q, want a page", args, status, out, complaint)
		}
	}
}

func TestErrorsKnowTheirExitStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{nil, 0, ""},
		{exit(exitNo), 1, ""},
		{fail(exitUsage, "%s: wrong", "--x"), 64, "semctl: --x: wrong"},
		{&remote.Refusal{Code: "NOSEM", Text: "NOSEM no such semaphore"}, 1, "semctl: NOSEM no such semaphore"},
		{&remote.Refusal{Code: "QUEUEFULL", Text: "QUEUEFULL"}, 75, "semctl: QUEUEFULL"},
		{fmt.Errorf("%w: a:1", remote.ErrUnavailable), 69, "semctl: no server answers: a:1"},
		{remote.ErrUnknown, 69, "semctl: the answer was lost, and what became of the request is not known"},
		{fmt.Errorf("wait: %w", context.Canceled), 130, "semctl: interrupted"},
		{errors.New("disk"), 70, "semctl: disk"},
		{errors.Join(errors.New("a"), errors.New("b")), 70, "semctl: a; b"},
		{errors.New("a\x1b[2J"), 70, `semctl: "a\x1b[2J"`},
	} {
		if got := statusOf(c.err); got != c.status {
			t.Errorf("%v: got status %d, want %d", c.err, got, c.status)
		}
		if got := complaint(c.err); got != c.says {
			t.Errorf("%v: got %q, want %q", c.err, got, c.says)
		}
	}
}

func TestEnvironmentSetsTheConnectionAlone(t *testing.T) {
	env := environment{"SEMCTL_ADDR=a,b:1", "SEMCTL_ADDR=c,d:1", "SEMCTL_TIMEOUT=3s", "SEMCTL_JSON=true", "SEMCTL_PASSWORD=s", "SEMCTL_TLS_CA="}
	parse := func(args ...string) commands {
		t.Helper()
		var c commands
		parser, err := newParser(&c, process{env: env})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatal(err)
		}
		return c
	}

	c := parse("list")
	cfg, err := c.Connection.config(env)

	if err != nil || fmt.Sprint(cfg.Addrs) != "[c:7360 d:1]" || cfg.Patience.String() != "3s" || cfg.Password != "s" || cfg.TLS != nil {
		t.Errorf("got %+v, %v, want c:7360, d:1, 3s and the password", cfg, err)
	}
	if c.JSON {
		t.Error("SEMCTL_JSON set --json, which is not of the connection")
	}
	if c := parse("list", "--addr", "x"); fmt.Sprint(c.Connection.Addr) != "[x]" {
		t.Errorf("got %v, want the command line before the environment", c.Connection.Addr)
	}
}

func TestJSONKeepsEveryByte(t *testing.T) {
	got, err := json.Marshal(object{{"a", text("é\n")}, {"b", text("\xff")}, {"c", int64(1) << 53}, {"d", object{}}})
	if want := `{"a":"é\n","b":{"base64":"/w=="},"c":9007199254740992,"d":{}}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestAnswersThatCannotBePrintedAreAFailure(t *testing.T) {
	s := &session{process: process{stdout: broken{}}}
	if err := s.print("x"); statusOf(err) != exitFailure {
		t.Errorf("got %v, want a failure", err)
	}
}

// broken is a pipe that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
