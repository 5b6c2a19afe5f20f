package resp

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A reply is nil, an int64, a Simple, a string (bulk), an Error, a []any or a Map.

// Simple is a status, such as OK.
type Simple string

// Error is an error reply.
type Error string

// Code is its first word.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// Error returns the whole text.
func (e Error) Error() string { return string(e) }

// Map is a RESP3 map: keys and values in turn, as they came.
type Map []any

func read(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("not RESP: %q", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return Simple(rest), nil
	case '-':
		return Error(rest), nil
	case ':':
		return number(rest)
	case '_':
		return nil, nil
	case '#':
		return rest == "t", nil
	case ',':
		return strconv.ParseFloat(rest, 64)
	}
	n, err := number(rest)
	if err != nil {
		return nil, fmt.Errorf("not RESP: %q", line)
	}
	switch kind {
	case '$', '=':
		return readBulk(in, n)
	case '*', '~', '>':
		return readArray(in, n)
	case '%':
		pairs, err := readArray(in, 2*n)
		if err != nil {
			return nil, err
		}
		return Map(pairs.([]any)), nil
	}
	return nil, fmt.Errorf("not RESP: %q", line)
}

func number(text string) (int64, error) {
	return strconv.ParseInt(text, 10, 64)
}

func readBulk(in *bufio.Reader, n int64) (any, error) {
	if n < 0 {
		return nil, nil
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, err
	}
	return string(text[:n]), nil
}

func readArray(in *bufio.Reader, n int64) (any, error) {
	if n < 0 {
		return nil, nil
	}
	all := []any{}
	for range n {
		v, err := read(in)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
