package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/plain"
	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any // text, int64, int, bool, nil, or what encoding/json knows
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, m.name), ':')
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// text is a name, holder or label.
type text = plain.Bytes

// printJSON prints a value on a line of its own.
func (s *session) printJSON(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fail(exitFailure, "print: %w", err)
	}
	return s.print(string(line) + "\n")
}

// print writes to stdout.
func (s *session) print(text string) error {
	if _, err := io.WriteString(s.stdout, text); err != nil {
		return fail(exitFailure, "print: %w", err)
	}
	return nil
}

// say prints an object as JSON, else a line for people.
func (s *session) say(o object, format string, args ...any) error {
	if s.json {
		return s.printJSON(o)
	}
	return s.print(fmt.Sprintf(format+"\n", args...))
}

// table collects rows and prints them in aligned columns.
type table struct {
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (s *session) printTable(t table) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fail(exitFailure, "print: %w", err)
	}
	return s.print(b.String())
}

func visible(text string) string { return plain.Text(text) }

func span(d time.Duration) string { return plain.Span(d) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// millis is a duration in whole milliseconds, -1 for one without end.
func millis(d time.Duration) int64 {
	if d == remote.Forever {
		return -1
	}
	return d.Milliseconds()
}
