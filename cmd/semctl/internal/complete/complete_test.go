package complete

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// grammar is a command line with every kind of place.
type grammar struct {
	JSON bool   `name:"json" short:"j" help:"Print JSON. And more."`
	Addr string `help:"Servers."`

	Release struct {
		Name   string `arg:"" complete:"semaphore"`
		Holder string `arg:"" complete:"holder"`
		Token  int64
	} `cmd:"" help:"Give back."`
	Renew struct {
		Sem string `complete:"semaphore"`
	} `cmd:"" help:"Prolong."`
	Node struct {
		List struct{} `cmd:""`
		Move struct {
			To string `enum:"east,west" default:"east"`
		} `cmd:""`
	} `cmd:""`
	Shell struct {
		Kind string `arg:"" enum:"bash,zsh"`
	} `cmd:""`
	Run struct {
		Sem     string   `complete:"semaphore"`
		Command []string `arg:"" optional:"" passthrough:""`
	} `cmd:""`
	Secret struct{} `cmd:"" hidden:""`
}

func TestPlaceIsFound(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string // its last word is completed
		want string // the candidates
		kind string
	}{
		{"", "release renew node shell run", ""},
		{"re", "release renew", ""},
		{"x", "", ""},
		{"--", "--json --addr", ""},
		{"--json re", "release renew", ""},
		{"--addr re", "", ""}, // a value of --addr
		{"--addr x re", "release renew", ""},
		{"--addr=x re", "release renew", ""},
		{"-j node ", "list move", ""},
		{"node move --to ", "east west", ""},
		{"node move --to=w", "--to=west", ""},
		{"node move --t", "--to", ""},
		{"release ", "", "semaphore"},
		{"release pool ", "", "holder"},
		{"release --token 7 pool ", "", "holder"},
		{"release pool w ", "", ""},
		{"release pool --", "--json --addr --token", ""},
		{"renew --sem ", "", "semaphore"},
		{"renew --sem=po", "", "semaphore"},
		{"shell ", "bash zsh", ""},
		{"shell z", "zsh", ""},
		{"run --sem pool -- ls --j", "", ""},
		{"run --nosuch ", "", ""},
	} {
		got := At(parser.Model.Node, strings.Split(c.line, " "))

		var words []string
		for _, found := range got.Candidates {
			words = append(words, found.Word)
		}
		if text := strings.Join(words, " "); text != c.want || got.Kind != c.kind {
			t.Errorf("%q: got %q and the kind %q, want %q and %q", c.line, text, got.Kind, c.want, c.kind)
		}
	}
}

func TestWhatWasGivenBeforeIsKnown(t *testing.T) {
	parser, err := kong.New(&grammar{}, kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}

	got := At(parser.Model.Node, []string{"--addr", "a:1", "release", "--token=7", "pool", "w"})

	if got.Given["addr"] != "a:1" || got.Given["token"] != "7" || got.Given["name"] != "pool" || got.Typed != "w" {
		t.Errorf("got %+v, want addr a:1, token 7, name pool, and w typed", got)
	}
	equals := At(parser.Model.Node, []string{"renew", "--sem=po"})
	if equals.Before != "--sem=" || equals.Typed != "po" {
		t.Errorf("got %+v, want po typed behind --sem=", equals)
	}
	if help := At(parser.Model.Node, []string{"--js"}).Candidates[0].Help; help != "Print JSON" {
		t.Errorf("help: got %q, want its first sentence", help)
	}
	if none := At(parser.Model.Node, nil); len(none.Candidates) == 0 {
		t.Error("no words: got nothing, want the commands")
	}
}
