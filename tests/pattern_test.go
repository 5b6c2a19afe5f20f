package tests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/semserver/semserver/tests/internal/resp"
)

// token is a word of a transcript: bare, quoted, or one of [ ] { }.
type token struct {
	text   string
	quoted bool
}

// tokens splits a line.
func tokens(line string) ([]token, error) {
	var all []token
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			return all, nil
		}
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			text, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			all, line = append(all, token{text, true}), line[len(quoted):]
			continue
		}
		end := 1
		if !strings.ContainsAny(line[:1], "[]{}") {
			if end = strings.IndexAny(line, " []{}"); end < 0 {
				end = len(line)
			}
		}
		all, line = append(all, token{text: line[:end]}), line[end:]
	}
}

// A pattern is a token, an errorPattern, or a group of patterns.
type pattern any

type errorPattern string

type group struct {
	isMap bool
	all   []pattern
}

// parse reads what a reply must look like.
func parse(text string) (pattern, error) {
	if strings.HasPrefix(text, "-") && (len(text) < 2 || text[1] < '0' || text[1] > '9') {
		return errorPattern(text[1:]), nil
	}
	all, err := tokens(text)
	if err != nil {
		return nil, err
	}
	p, rest, err := parseOne(all)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%q is left over", rest[0].text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", text, err)
	}
	return p, nil
}

func parseOne(in []token) (pattern, []token, error) {
	if len(in) == 0 {
		return nil, nil, fmt.Errorf("something is missing at the end")
	}
	first, in := in[0], in[1:]
	if code, refused := strings.CutPrefix(first.text, "-"); refused && !first.quoted && strings.ToUpper(code) == code && strings.ToLower(code) != code {
		return errorPattern(code), in, nil
	}
	if first.quoted || first.text != "[" && first.text != "{" {
		return first, in, nil
	}
	g := group{isMap: first.text == "{"}
	closing := map[bool]string{false: "]", true: "}"}[g.isMap]
	for len(in) > 0 && (in[0].quoted || in[0].text != closing) {
		p, rest, err := parseOne(in)
		if err != nil {
			return nil, nil, err
		}
		g.all, in = append(g.all, p), rest
	}
	if len(in) == 0 {
		return nil, nil, fmt.Errorf("no %s", closing)
	}
	return g, in[1:], nil
}

// values are what $names stand for.
type values map[string]any

// match compares a reply with a pattern.
func (v values) match(p pattern, got any) bool {
	switch p := p.(type) {
	case errorPattern:
		e, ok := got.(resp.Error)
		return ok && (string(e) == string(p) || strings.HasPrefix(string(e), string(p)+" "))
	case group:
		if p.isMap {
			return v.matchMap(p.all, got)
		}
		all, ok := got.([]any)
		return ok && v.matchAll(p.all, all)
	case token:
		return v.matchToken(p, got)
	}
	return false
}

func (v values) matchAll(patterns []pattern, got []any) bool {
	for i, p := range patterns {
		if p == pattern(token{text: "…"}) {
			return true
		}
		if i >= len(got) || !v.match(p, got[i]) {
			return false
		}
	}
	return len(patterns) == len(got)
}

// matchMap compares the pairs that are written with those of the same keys.
func (v values) matchMap(patterns []pattern, got any) bool {
	var pairs []any
	switch got := got.(type) {
	case resp.Map:
		pairs = got
	case []any: // a map in RESP2
		pairs = got
	default:
		return false
	}
	fields := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	for i := 0; i < len(patterns); i += 2 {
		key, ok := patterns[i].(token)
		if ok && key.text == "…" {
			return true
		}
		value, known := fields[key.text]
		if !ok || !known || i+1 == len(patterns) || !v.match(patterns[i+1], value) {
			return false
		}
	}
	return len(patterns) == len(pairs)
}

func (v values) matchToken(p token, got any) bool {
	number, isNumber := got.(int64)
	switch {
	case p.quoted:
		return got == any(p.text)
	case p.text == "*":
		return true
	case p.text == "(nil)":
		return got == nil
	case strings.HasPrefix(p.text, "$"):
		if want, known := v[p.text]; known {
			return got == want
		}
		v[p.text] = got
		return got != nil
	case strings.HasPrefix(p.text, "~"):
		most, err := strconv.ParseInt(p.text[1:], 10, 64)
		return err == nil && isNumber && number >= max(1, most-patience.Milliseconds()) && number <= most
	case isNumber:
		return p.text == strconv.FormatInt(number, 10)
	case got == nil:
		return false
	}
	return p.text == fmt.Sprint(got)
}

func TestPatternsTellRepliesApart(t *testing.T) {
	grant := []any{"h1", int64(7), int64(0), int64(49000), int64(0)}
	for _, c := range []struct {
		pattern string
		reply   any
		want    bool
	}{
		{"[h1 $t 0 ~50000 0]", grant, true},
		{"[h1 7 0 49000 0]", grant, true},
		{"[h1 * …]", grant, true},
		{"[h1 8 0 49000 0]", grant, false},
		{"[h1 7 0 49000]", grant, false},
		{"[h1 7 0 49000 0 0]", grant, false},
		{"[h1 7 0 ~48000 0]", grant, false},
		{"[h1 7 0 ~90000 0]", grant, false},
		{"(nil)", grant, false},
		{"(nil)", nil, true},
		{"[]", nil, false},
		{"[]", []any{}, true},
		{"OK", resp.Simple("OK"), true},
		{"OK", "OKAY", false},
		{"1", int64(1), true},
		{"1", int64(10), false},
		{"-1", int64(-1), true},
		{"-NOSEM", resp.Error("NOSEM no such semaphore"), true},
		{"-NOSEM no such", resp.Error("NOSEM no such semaphore"), true},
		{"-NO", resp.Error("NOSEM no such semaphore"), false},
		{"-NOSEM", resp.Simple("NOSEM"), false},
		{"{a 1 …}", resp.Map{"b", int64(2), "a", int64(1)}, true},
		{"{a 1 …}", []any{"b", int64(2), "a", int64(1)}, true},
		{"{a 1}", resp.Map{"b", int64(2), "a", int64(1)}, false},
		{"{a 2 …}", resp.Map{"b", int64(2), "a", int64(1)}, false},
		{`"a b"`, "a b", true},
		{`"\x00"`, "\x00", true},
	} {
		p, err := parse(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := (values{}).match(p, c.reply); got != c.want {
			t.Errorf("%s against %s: got %v, want %v", c.pattern, show(c.reply), got, c.want)
		}
	}
}
