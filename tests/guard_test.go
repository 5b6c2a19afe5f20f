package tests

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/resp"
)

// guardScript is the guarded job that the README shows.
const guardScript = "../examples/guard.sh"

// guardLease is the lease of the script under test, in place of its 30 s.
const guardLease = 6 * time.Second

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadmeShowsTheGuardAsItIs(t *testing.T) {
	shown := "```sh\n" + read(t, guardScript) + "```\n"
	if !strings.Contains(read(t, "../README.md"), shown) {
		t.Errorf("README.md does not show %s as it is", guardScript)
	}
}

// guard is a run of the script with a node of its own, a capacity of 1, and a shorter lease.
type guard struct {
	*testing.T
	look   *client
	folder string // its scripts and what they write
	script *exec.Cmd
	out    strings.Builder
}

// newGuard prepares a run of a shell command under guard. The command finds its folder in $FOLDER, and
// when a file "broken" is there, every call of redis-cli fails.
func newGuard(t *testing.T, command string) *guard {
	t.Helper()
	n := start(t)
	g := &guard{T: t, look: dial(t, n), folder: t.TempDir()}
	g.look.want("OK", "SEM.CREATE", "loader", 1)
	port, err := resp.Port(n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	g.write("guard.sh", read(t, guardScript))
	g.edit("-p 7360", fmt.Sprintf("-p %d", port))
	g.edit("lease=30", fmt.Sprintf("lease=%.0f", guardLease.Seconds()))
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	g.write("redis-cli", fmt.Sprintf("#!/bin/sh\n[ ! -e %s/broken ] || { echo >>%[1]s/failures; exit 1; }\nexec %s \"$@\"\n", g.folder, cli))
	g.script = exec.Command("sh", filepath.Join(g.folder, "guard.sh"), "sh", "-c", command)
	g.script.Env = append(os.Environ(), "FOLDER="+g.folder, "PATH="+g.folder+":"+os.Getenv("PATH"))
	g.script.Stdout, g.script.Stderr = &g.out, &g.out
	// What outlives the script may hold its output open; nobody waits for that.
	g.script.WaitDelay = time.Second
	return g
}

// edit changes the copy of the script that is run.
func (g *guard) edit(from, to string) {
	g.Helper()
	text := read(g.T, filepath.Join(g.folder, "guard.sh"))
	if !strings.Contains(text, from) {
		g.Fatalf("%s does not contain %q", guardScript, from)
	}
	g.write("guard.sh", strings.ReplaceAll(text, from, to))
}

func (g *guard) write(name, text string) {
	g.Helper()
	if err := os.WriteFile(filepath.Join(g.folder, name), []byte(text), 0o755); err != nil {
		g.Fatal(err)
	}
}

// launch starts the script.
func (g *guard) launch() {
	g.Helper()
	if err := g.script.Start(); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = g.script.Process.Kill() }) // it has ended unless the test failed
}

// status waits for the end of the script.
func (g *guard) status() int {
	g.Helper()
	err := g.script.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		g.Fatal(err)
	}
	return g.script.ProcessState.ExitCode()
}

// job waits until a job of stayingJob runs, and returns its process.
func (g *guard) job() int {
	g.Helper()
	var pid int
	trial.Await(g.T, func() error {
		text, err := os.ReadFile(filepath.Join(g.folder, "job"))
		if err != nil {
			return fmt.Errorf("job: %w", err)
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	})
	g.Cleanup(func() {
		if running(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

// stayingJob is a command that runs until it is ended.
const stayingJob = `echo $$ >"$FOLDER/job.new"; mv "$FOLDER/job.new" "$FOLDER/job"; exec sleep 1000`

// running says whether there is such a process that has not ended.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func (g *guard) gone(pid int) {
	g.Helper()
	trial.Await(g.T, func() error {
		if running(pid) {
			return fmt.Errorf("the job %d still runs", pid)
		}
		return nil
	})
}

// free checks that nothing is held and nobody waits.
func (g *guard) free() {
	g.Helper()
	if err := g.look.books("loader", 0, 1, 0); err != nil {
		g.Errorf("after the script: %v", err)
	}
}

func TestGuardPassesOnInputOutputAndStatus(t *testing.T) {
	t.Parallel()
	g := newGuard(t, "cat; exit 7")
	g.script.Stdin = strings.NewReader("rows\n")
	g.launch()

	if got := g.status(); got != 7 {
		t.Errorf("status: got %d, want 7", got)
	}
	if got := g.out.String(); got != "rows\n" {
		t.Errorf("output: got %q, want the input", got)
	}
	g.free()
	if i := g.look.info("loader"); i["grants_immediate"] != 1 || i["expirations"] != 0 {
		t.Errorf("books: got %v, want one grant and no expiry", i)
	}
}

func TestGuardGivesUpWithoutAPermit(t *testing.T) {
	t.Parallel()
	g := newGuard(t, "echo ran")
	g.look.acquire("loader", "HOLDER", "other", "PERSIST")
	g.edit("WAIT 60000", "WAIT 100")
	g.launch()

	if got := g.status(); got != 75 || !strings.Contains(g.out.String(), "no permit") {
		t.Errorf("got status %d and %q, want 75 and the reason", got, g.out.String())
	}
	g.look.want(1, "SEM.RELEASE", "loader", "other")
	g.free()
}

func TestGuardEndsItsJobOnASignalAndGivesThePermitBack(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			g := newGuard(t, stayingJob)
			g.launch()
			pid := g.job()

			if err := g.script.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}

			if got := g.status(); got != 128+int(syscall.SIGTERM) {
				t.Errorf("status: got %d, want that of a job that SIGTERM ended", got)
			}
			if running(pid) {
				t.Error("the job outlived the script")
			}
			g.free()
			if i := g.look.info("loader"); i["releases"] != 1 {
				t.Errorf("releases: got %d, want 1", i["releases"])
			}
		})
	}
}

// TestGuardHoldsThePermitUntilTheJobHasEnded gives the job more to do than a lease lasts after the
// signal.
func TestGuardHoldsThePermitUntilTheJobHasEnded(t *testing.T) {
	t.Parallel()
	g := newGuard(t, `trap 'stop=1' TERM; stop=; echo $$ >"$FOLDER/job.new"; mv "$FOLDER/job.new" "$FOLDER/job"
		until [ "$stop" ]; do sleep 1; done; sleep 8`)
	g.launch()
	pid := g.job()
	if err := g.script.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	trial.Await(t, func() error {
		held := g.look.info("loader")["in_use"] == 1
		switch {
		case !running(pid):
			return nil
		case !held && running(pid):
			t.Fatal("the permit was free while the job still ran")
		}
		return errors.New("the job still runs")
	})
	if got := g.status(); got != 0 {
		t.Errorf("status: got %d, want the job's", got)
	}
	g.free()
	if i := g.look.info("loader"); i["expirations"] != 0 || i["renewals"] < 3 {
		t.Errorf("books: got %v, want no expiry and several renewals", i)
	}
}

func TestGuardLeavesTheLineOnASignal(t *testing.T) {
	t.Parallel()
	g := newGuard(t, "echo ran")
	g.look.acquire("loader", "HOLDER", "other", "PERSIST")
	g.launch()
	joined(t, g.look, "loader", 1)

	if err := g.script.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	if got := g.status(); got != 128+int(syscall.SIGTERM) || g.out.Len() != 0 {
		t.Errorf("got status %d and %q, want 143 and nothing", got, g.out.String())
	}
	joined(t, g.look, "loader", 0)
	g.look.want(1, "SEM.RELEASE", "loader", "other")
	g.free()
}

func TestGuardRenewsAfterTheWaitBeforeTheJob(t *testing.T) {
	t.Parallel()
	g := newGuard(t, stayingJob)
	g.look.acquire("loader", "HOLDER", "other", "PERSIST")
	g.launch()
	joined(t, g.look, "loader", 1)
	g.look.want(1, "SEM.RELEASE", "loader", "other")

	pid := g.job()

	if i := g.look.info("loader"); i["grants_waited"] != 1 || i["renewals"] < 1 {
		t.Errorf("books: got %v, want a grant from the line and a renewal", i)
	}
	if err := g.script.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.status()
	g.gone(pid)
	g.free()
}

// TestGuardThatIsKilledKeepsThePermitForOneLease ends the script without a chance to clean up.
func TestGuardThatIsKilledKeepsThePermitForOneLease(t *testing.T) {
	t.Parallel()
	g := newGuard(t, stayingJob)
	g.launch()
	g.job()

	if err := g.script.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	g.status()

	killed := time.Now()
	if err := g.look.books("loader", 1, 0, 0); err != nil {
		t.Error(err)
	}
	g.look.acquire("loader", "HOLDER", "next", "WAIT", 60000)
	if took := time.Since(killed); took > guardLease+time.Second {
		t.Errorf("the permit was free after %v, want it within the lease of %v", took, guardLease)
	}
	if i := g.look.info("loader"); i["expirations"] != 1 {
		t.Errorf("expirations: got %d, want 1", i["expirations"])
	}
}

// TestGuardOutlivesAFailedCall lets every renewal fail for a while that is shorter than the lease.
func TestGuardOutlivesAFailedCall(t *testing.T) {
	t.Parallel()
	g := newGuard(t, stayingJob)
	g.launch()
	pid := g.job()
	renewals := g.look.info("loader")["renewals"]
	g.write("broken", "")
	trial.Await(t, func() error {
		_, err := os.Stat(filepath.Join(g.folder, "failures"))
		return err
	})
	if err := os.Remove(filepath.Join(g.folder, "broken")); err != nil {
		t.Fatal(err)
	}

	trial.Await(t, func() error {
		if got := g.look.info("loader")["renewals"]; got <= renewals {
			return fmt.Errorf("renewals: got %d, want more than %d", got, renewals)
		}
		return nil
	})

	if !running(pid) {
		t.Error("the job was ended by a failed call")
	}
	if err := g.script.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.status()
	g.free()
}

func TestGuardEndsItsJobBeforeALeaseThatItCannotRenew(t *testing.T) {
	t.Parallel()
	g := newGuard(t, stayingJob)
	g.launch()
	pid := g.job()

	g.write("broken", "")

	g.gone(pid)
	if err := g.look.books("loader", 1, 0, 0); err != nil {
		t.Errorf("the job's lease was over before the job: %v", err)
	}
	if got := g.status(); got != 128+int(syscall.SIGTERM) || !strings.Contains(g.out.String(), "lost") {
		t.Errorf("got status %d and %q, want 143 and the reason", got, g.out.String())
	}
}

func TestGuardEndsItsJobAtOnceWhenThePermitIsTaken(t *testing.T) {
	t.Parallel()
	g := newGuard(t, stayingJob)
	g.edit("lease=6", "lease=12")
	g.launch()
	pid := g.job()
	began := time.Now()
	holders := g.look.do("SEM.HOLDERS", "loader").([]any)[1].([]any)
	holder := holders[0].([]any)[0]

	g.look.want(1, "SEM.RELEASE", "loader", holder)

	if got := g.status(); got != 128+int(syscall.SIGTERM) || running(pid) {
		t.Errorf("got status %d and a job that runs: %v, want 143 and none", got, running(pid))
	}
	// The first renewal is due after 4 s; without its answer the job would go on for 10 s.
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the job went on for %v, want it ended by the next renewal", took)
	}
	g.free()
}
