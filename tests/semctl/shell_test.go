package semctl

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// inShell runs a script and returns its lines.
func (s *server) inShell(shell string, flags []string, script string) []string {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), shell, append(flags, "-c", script)...)
	c.Env = environment("SEMCTL_ADDR="+s.Addr, "HOME="+s.t.TempDir())
	o := finish(s.t, c)
	if o.status != 0 {
		s.t.Fatalf("%s: got %+v, want status 0", shell, o)
	}
	return strings.Split(strings.TrimSpace(o.stdout), "\n")
}

// atTab says what a shell makes of a line when the tab key is pressed.
type atTab struct {
	line string
	want []string // among what is offered, without what it means
	not  string
}

func TestBashCompletes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "customer:17", "3")
	s.ok("create", "customer:18", "3")
	s.ok("create", "with space", "3")
	s.ok("acquire", "customer:17", "--holder", "pod-1")
	for _, c := range []atTab{
		{"semctl in", []string{"info"}, "list"},
		{"semctl info cust", []string{"customer:17", "customer:18"}, "with space"},
		{"semctl info customer:", []string{"17", "18"}, "customer"}, // bash replaces what follows the colon
		{"semctl release customer:17 ", []string{"pod-1"}, "customer:17"},
		{"semctl acquire --per", []string{"--permits", "--persist"}, "--lease"},
		{"semctl --json node ", []string{"list", "snapshot"}, "info"},
		{"semctl completion ", []string{"bash", "fish", "zsh"}, ""},
		{"semctl --addr " + nobody(t) + " info ", []string{""}, "customer:17"},
		{"semctl info --addr=" + s.Addr + " cust", []string{"customer:17", "customer:18"}, ""},
	} {
		got := s.inShell("bash", []string{"--norc"}, `source <(semctl completion bash)
			COMP_LINE='`+c.line+`' COMP_POINT=${#COMP_LINE}
			_semctl
			printf '%s\n' "${COMPREPLY[@]}"`)
		c.check(t, "bash", got)
	}
}

func (c atTab) check(t *testing.T, shell string, got []string) {
	t.Helper()
	for _, want := range c.want {
		if !slices.Contains(got, want) {
			t.Errorf("%s, %q: got %q, want %q among them", shell, c.line, got, want)
		}
	}
	if c.not != "" && slices.Contains(got, c.not) {
		t.Errorf("%s, %q: got %q, want no %q", shell, c.line, got, c.not)
	}
}

func TestFishAndZshCompleteWhereTheyAreInstalled(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.ok("create", "customer:17", "3")
	cases := []atTab{
		{"semctl in", []string{"info"}, "list"},
		{"semctl info cust", []string{"customer:17"}, "info"},
		{"semctl acquire --per", []string{"--permits", "--persist"}, "--lease"},
	}
	scripts := map[string]func(line string) string{
		"fish": func(line string) string {
			return "semctl completion fish | source; complete -C '" + line + "' | string replace -r '\\t.*' ''"
		},
		// The completion system needs a terminal; what it would be told does not.
		"zsh": func(line string) string {
			return `compdef() { : }
				_describe() { print -l -- "${(@P)2//(#b)([^\\]):*/$match[1]}" | sed 's/\\:/:/g'; }
				_files() { : }
				setopt extendedglob
				source <(semctl completion zsh)
				words=(${(z):-"` + line + `"}); CURRENT=$#words
				_semctl`
		},
	}
	for shell, script := range scripts {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		for _, c := range cases {
			c.check(t, shell, s.inShell(shell, nil, script(c.line)))
		}
	}
}

func TestEveryShellHasAScriptAndHelp(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := s.ok("completion", shell)
		if !strings.Contains(script, "__complete") {
			t.Errorf("%s: got %q, want a script that asks semctl", shell, script)
		}
	}
	help := s.ok("--help")
	if got := s.ok(); got != help {
		t.Errorf("without arguments: got %q, want the help", got)
	}
	for _, command := range []string{"acquire", "release", "top", "bench", "node", "completion"} {
		if !strings.Contains(help, "\n  "+command+" ") {
			t.Errorf("help: got %q, want it to list %s", help, command)
		}
		if page := s.ok(command, "--help"); !strings.Contains(page, "Usage: semctl "+command) {
			t.Errorf("%s --help: got %q, want its page", command, page)
		}
	}
	if strings.Contains(help, "__complete") {
		t.Error("help lists __complete, want it hidden")
	}
	if got := s.ok("--version"); !strings.HasPrefix(got, "semctl ") {
		t.Errorf("--version: got %q, want semctl and the version", got)
	}
}
