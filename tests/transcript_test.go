package tests

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
	"github.com/semserver/semserver/tests/internal/node"
	"github.com/semserver/semserver/tests/internal/resp"
)

// TestTranscripts plays every transcript/*.txt on a fresh node, once in RESP2 and once in RESP3.
//
// A transcript is a conversation, a line each:
//
//	# remark
//	a> SEM.ACQUIRE pool HOLDER h1     client a sends a command; "…" quotes, with \xHH and the like
//	a< [h1 $t1 0 ~30000 0]            and must be answered with this
//	a<                                a must not have been answered
//	a<2 "*-1\r\n"                     the bytes of the next reply in RESP2; a<3 those in RESP3
//	a! close                          a hangs up; also reset and half-close
//	a< closed                         the server closed the connection
//	pass 100ms                        time goes by
//	where $t2 > $t1                   compares numbers seen
//
// Replies are written as integers, bare or quoted strings, [arrays], {maps} and (nil); errors as
// "-CODE words", of which only what is written is compared, from the beginning. $name takes a value
// the first time and stands for it later; * is any one value; ~n is a number of 1 … n, and one that
// stands for a duration is not far below n; … is whatever else an array or map has. Maps are compared
// by the keys that are written; in RESP2 they come as flat arrays.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("transcript/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: got %v, %v, want some", files, err)
	}
	for _, file := range files {
		for _, protocol := range []int{2, 3} {
			name := fmt.Sprintf("%s/RESP%d", strings.TrimSuffix(filepath.Base(file), ".txt"), protocol)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, file, protocol, start(t))
			})
		}
	}
}

// still is how long a client must stay unanswered where a transcript says so. The books in the
// transcript say the same without a clock; this looks at the wire.
const still = 30 * time.Millisecond

// player plays one transcript.
type player struct {
	*testing.T
	nodes    []*node.Node // of one cluster; each client speaks to the next
	protocol int
	clients  map[string]*client
	asked    map[*client][][]token // what each client has sent and has not been answered
	values   values
	at       string // file and line
}

func play(t *testing.T, file string, protocol int, nodes ...*node.Node) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{T: t, nodes: nodes, protocol: protocol, clients: map[string]*client{}, asked: map[*client][][]token{}, values: values{}}
	for i, line := range strings.Split(string(text), "\n") {
		p.at = fmt.Sprintf("%s:%d", file, i+1)
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			p.step(line)
		}
	}
}

func (p *player) fail(format string, args ...any) {
	p.Helper()
	p.Fatalf("%s: %s", p.at, fmt.Sprintf(format, args...))
}

func (p *player) step(line string) {
	p.Helper()
	if duration, ok := strings.CutPrefix(line, "pass "); ok {
		p.pass(duration)
		return
	}
	if condition, ok := strings.CutPrefix(line, "where "); ok {
		p.where(condition)
		return
	}
	i := strings.IndexAny(line, "><!")
	if i < 1 || strings.Contains(line[:i], " ") {
		p.fail("cannot read %q", line)
	}
	c, rest := p.client(line[:i]), strings.TrimSpace(line[i+1:])
	switch line[i] {
	case '>':
		p.send(c, rest)
	case '!':
		p.hangUp(c, rest)
	case '<':
		p.expect(c, rest)
	}
}

// client is the connection of this name, opened when it is first spoken of.
func (p *player) client(name string) *client {
	p.Helper()
	if c := p.clients[name]; c != nil {
		return c
	}
	c := dial(p.T, p.nodes[len(p.clients)%len(p.nodes)])
	if p.protocol == 3 {
		c.do("HELLO", 3)
	}
	p.clients[name] = c
	return c
}

func (p *player) pass(duration string) {
	p.Helper()
	d, err := time.ParseDuration(duration)
	if err != nil {
		p.fail("%v", err)
	}
	<-time.After(d)
}

func (p *player) where(condition string) {
	p.Helper()
	parts := strings.Fields(condition)
	if len(parts) != 3 {
		p.fail("cannot read %q", condition)
	}
	left, okLeft := p.values[parts[0]].(int64)
	right, okRight := p.values[parts[2]].(int64)
	holds := map[string]bool{">": left > right, "<": left < right, "=": left == right}[parts[1]]
	if !okLeft || !okRight || !holds {
		p.fail("%s does not hold: %d, %d", condition, left, right)
	}
}

func (p *player) send(c *client, command string) {
	p.Helper()
	words, err := tokens(command)
	if err != nil {
		p.fail("%v", err)
	}
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word.text
		if v, known := p.values[word.text]; known && !word.quoted {
			args[i] = v
		}
	}
	p.asked[c] = append(p.asked[c], words)
	c.send(args...)
}

func (p *player) hangUp(c *client, how string) {
	p.Helper()
	var err error
	switch how {
	case "close":
		err = c.Close()
	case "reset":
		err = c.Reset()
	case "half-close":
		err = c.Conn.Conn.(*net.TCPConn).CloseWrite()
	default:
		p.fail("cannot hang up by %q", how)
	}
	if err != nil {
		p.fail("%s: %v", how, err)
	}
}

func (p *player) expect(c *client, want string) {
	p.Helper()
	if protocol, bytes, raw := strings.Cut(want, " "); raw && (protocol == "2" || protocol == "3") {
		p.expectBytes(c, protocol, bytes)
		return
	}
	if want == "" {
		p.inLine(c)
		if !c.Silent(still) {
			p.fail("got %v, want no answer yet", show(c.receive()))
		}
		return
	}
	p.asked[c] = p.asked[c][min(1, len(p.asked[c])):]
	got, err := c.Receive(patience)
	if want == "closed" {
		if err == nil || os.IsTimeout(err) {
			p.fail("got %v, %v, want the connection closed", show(got), err)
		}
		return
	}
	if err != nil {
		p.fail("got %v, want %s", err, want)
	}
	pattern, err := parse(want)
	if err != nil {
		p.fail("%v", err)
	}
	if !p.values.match(pattern, got) {
		p.fail("got %v, want %s", show(got), want)
	}
}

func (p *player) expectBytes(c *client, protocol, quoted string) {
	p.Helper()
	if protocol != strconv.Itoa(p.protocol) {
		return
	}
	want, err := strconv.Unquote(quoted)
	if err != nil {
		p.fail("%s: %v", quoted, err)
	}
	p.asked[c] = p.asked[c][min(1, len(p.asked[c])):]
	got, err := c.Raw(len(want), patience)
	if err != nil || got != want {
		p.fail("got %q, %v, want %q", got, err, want)
	}
}

// inLine waits until the request that keeps a client stands in line: requests of several clients reach
// the line in the order of the transcript.
func (p *player) inLine(c *client) {
	p.Helper()
	if len(p.asked[c]) == 0 || len(p.asked[c][0]) < 4 || p.asked[c][0][2].text != "HOLDER" {
		p.fail("want SEM.ACQUIRE key HOLDER id … before it is not answered")
	}
	key, holder := p.asked[c][0][1].text, p.asked[c][0][3].text
	look := dial(p.T, p.nodes[0])
	defer look.Close()
	trial.Await(p.T, func() error {
		line := look.do("SEM.WAITERS", key)
		if !c.Silent(time.Millisecond) || standsIn(line, holder) {
			return nil // an answer is what expect complains of
		}
		return fmt.Errorf("%s: got the line %v, want %s in it", p.at, show(line), holder)
	})
}

// standsIn reports whether SEM.WAITERS has shown this holder.
func standsIn(line any, holder string) bool {
	page, ok := line.([]any)
	if !ok || len(page) != 2 {
		return false
	}
	waiters, _ := page[1].([]any)
	return slices.ContainsFunc(waiters, func(w any) bool { return w.([]any)[0] == holder })
}

// show writes a reply as transcripts do.
func show(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "(nil)"
	case resp.Error:
		return "-" + string(reply)
	case string:
		if reply == "" || strings.ContainsAny(reply, " \"[]{}\r\n\\\x00") {
			return strconv.Quote(reply)
		}
		return reply
	case []any:
		return "[" + showAll(reply) + "]"
	case resp.Map:
		return "{" + showAll(reply) + "}"
	}
	return fmt.Sprint(reply)
}

func showAll(replies []any) string {
	all := make([]string, len(replies))
	for i, reply := range replies {
		all[i] = show(reply)
	}
	return strings.Join(all, " ")
}
