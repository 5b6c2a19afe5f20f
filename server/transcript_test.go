package server

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTranscripts plays the scripts in testdata, each in both versions of the protocol, and compares
// the replies byte for byte. A line "> words" sends a command, written as an inline command is;
// "< bytes" is its reply, "2< bytes" and "3< bytes" where the versions differ, with escapes as in Go.
// Every reply ends with \r\n, which is left out. In node.txt,
// standalone.txt and cluster.txt the server is one of a trio.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		for _, proto := range []string{"2", "3"} {
			name := strings.TrimSuffix(filepath.Base(f), ".txt")
			t.Run(name+"/RESP"+proto, func(t *testing.T) { play(t, f, proto) })
		}
	}
}

func play(t *testing.T, path, proto string) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := start(t, func(c *Config) {
		c.DefaultCapacity = []CapacityRule{{"auto:*", 2}}
		switch n := newTrio(); filepath.Base(path) {
		case "node.txt", "standalone.txt":
			c.Members, c.Care = n, n
		case "cluster.txt":
			c.Members, c.ClusterCommands = n, true
		}
	}).dial(t)
	c.do("HELLO " + proto + " SETNAME me")
	sent := ""
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		mark, rest, _ := strings.Cut(line, " ")
		switch mark {
		case ">":
			words, ok := splitWords([]byte(rest))
			if !ok {
				t.Fatalf("%s:%d: bad quotes", path, n)
			}
			all := make([]string, len(words))
			for i, w := range words {
				all[i] = string(w)
			}
			sent = rest
			c.send(all...)
		case "<", proto + "<":
			want, err := strconv.Unquote(`"` + strings.ReplaceAll(rest, `"`, `\"`) + `\r\n"`)
			if err != nil {
				t.Fatalf("%s:%d: %v", path, n, err)
			}
			if got := c.reply(); got != want {
				t.Fatalf("%s:%d: %s\ngot  %s\nwant %s", path, n, sent, strconv.Quote(got), strconv.Quote(want))
			}
		}
	}
}
