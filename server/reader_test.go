package server

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// pieces is a connection whose bytes arrive in pieces of given sizes, over and over.
type pieces struct {
	data  string
	sizes []byte
	i     int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.data == "" {
		return 0, io.EOF
	}
	n := len(p.data)
	if len(p.sizes) > 0 {
		n = int(p.sizes[p.i%len(p.sizes)])%61 + 1
		p.i++
	}
	n = copy(b[:min(n, len(b))], p.data)
	p.data = p.data[n:]
	return n, nil
}

func newReader(anon bool) *reader {
	limits := DefaultWireLimits()
	return &reader{limits: &limits, pool: &bufferPool{}, anon: anon}
}

// commands reads everything and returns each command quoted, and what ended it.
func commands(r *reader, src io.Reader) ([]string, error) {
	var all []string
	for {
		for {
			args, err := r.next()
			if err != nil {
				return all, err
			}
			if args == nil {
				break
			}
			all = append(all, fmt.Sprintf("%q", args))
		}
		r.shrink()
		if _, err := r.fill(src); err != nil {
			return all, err
		}
	}
}

// hostile are requests that crash, spin or bloat careless readers, and some that do not.
var hostile = []string{
	"*1\r\n$9223372036854775807\r\n", "*9223372036854775807\r\n", "*1000000000\r\n", "*1\r\n$2000000000\r\nx",
	"*1\r\n$-2\r\n", "*1\r\n:5\r\n", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", "*-5\r\n$1\r\n", "$4 PING\r\n",
	"*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", "PING\r\nECHO \"a\\x41 b\" 'c\\'d'\r\n\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
	"$9223372036854775807 x\r\n", "*1\r\n$+4\r\nPING\r\n", "*+1\r\n", "* 1\r\n", "*1\n$4\nPING\n", "\"", "'\n", "\\x\n",
}

func TestReaderCutsCommands(t *testing.T) {
	for _, c := range []struct {
		in, want, end string
	}{
		{"*1\r\n$4\r\nPING\r\n", `["PING"]`, "EOF"},
		{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", `["ECHO" ""]`, "EOF"},
		{"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\x00\xff\r\n", `["ECHO" "\r\n\x00\xff"]`, "EOF"},
		{"*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n", `["PING"]`, "EOF"},
		{"PING\nPING\r\n", `["PING"] ["PING"]`, "EOF"},
		{"  ECHO \"a\\x41\\n b\" 'c\\'d\\n' e\"f\"\r\n", `["ECHO" "aA\n b" "c'd\\n" "ef"]`, "EOF"},
		{"PING\r\n*x\r\n", `["PING"]`, "Protocol error: invalid multibulk length"},
		{"*1025\r\n", "", "Protocol error: invalid multibulk length"},
		{"*1\r\n$1048577\r\n", "", "Protocol error: invalid bulk length"},
		{"*2\r\n$600000\r\n" + strings.Repeat("x", 600000) + "\r\n$600000\r\n", "", "Protocol error: invalid bulk length"},
		{"*1\r\n$9223372036854775807\r\n", "", "Protocol error: invalid bulk length"},
		{"*1\r\n$-2\r\n", "", "Protocol error: invalid bulk length"},
		{"*1\r\n$--2\r\n", "", "Protocol error: invalid bulk length"},
		{"*-9223372036854775808\r\n*01\r\n$004\r\nPING\r\n", `["PING"]`, "EOF"},
		{"*-9223372036854775809\r\n", "", "Protocol error: invalid multibulk length"},
		{"*9223372036854775808\r\n", "", "Protocol error: invalid multibulk length"},
		{"*-\r\n", "", "Protocol error: invalid multibulk length"},
		{"*\r\n", "", "Protocol error: invalid multibulk length"},
		{"*1\r\n:5\r\n", "", "Protocol error: expected '$', got ':'"},
		{"*1\r\n$1\r\nxyz", "", "Protocol error: expected CRLF behind a bulk"},
		{"*" + strings.Repeat("1", 40), "", "Protocol error: too big mbulk count string"},
		{"*1\r\n$" + strings.Repeat("1", 40), "", "Protocol error: too big bulk count string"},
		{strings.Repeat("x", 70000), "", "Protocol error: too big inline request"},
		{"ECHO \"x\r\n", "", "Protocol error: unbalanced quotes in request"},
		{"ECHO \"x\"y\r\n", "", "Protocol error: unbalanced quotes in request"},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", `["GET" "/" "HTTP/1.1"]`, "Protocol error: this is not an HTTP server"},
		{"post /\r\n", "", "Protocol error: this is not an HTTP server"},
	} {
		for _, sizes := range [][]byte{nil, {0}, {2, 60, 0}} {
			got, err := commands(newReader(false), &pieces{data: c.in, sizes: sizes})
			if strings.Join(got, " ") != c.want || err.Error() != c.end {
				t.Errorf("%.40q in pieces %v: got %v, %v; want %v, %v", c.in, sizes, got, err, c.want, c.end)
			}
		}
	}
}

func TestReaderIsStricterBeforeAuthentication(t *testing.T) {
	for in, want := range map[string]string{
		"*11\r\n":                   "Protocol error: unauthenticated multibulk length",
		"*1\r\n$16385\r\n":          "Protocol error: unauthenticated bulk length",
		strings.Repeat("x", 17<<10): "Protocol error: too big inline request",
		"*10\r\n$16384\r\n":         "EOF",
	} {
		if _, err := commands(newReader(true), &pieces{data: in}); err.Error() != want {
			t.Errorf("%.30q: got %v, want %v", in, err, want)
		}
	}
}

func TestReaderScansNothingTwice(t *testing.T) {
	// One command of many arguments, and a long inline command, byte by byte: quadratic work would
	// take minutes.
	big := request(append([]string{"ECHO"}, slices.Repeat([]string{strings.Repeat("y", 900)}, 1000)...)...)
	inline := strings.Repeat("z", 60<<10) + "\n"
	began := time.Now()
	got, err := commands(newReader(false), &pieces{data: big + inline, sizes: []byte{0}})
	if len(got) != 2 || err != io.EOF {
		t.Errorf("got %d commands and %v, want 2 and EOF", len(got), err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("took %v", took)
	}
}

func TestReaderKeepsNoLargeBuffer(t *testing.T) {
	r := newReader(false)
	large := request("ECHO", strings.Repeat("x", 1<<19))
	// Five bytes of the next command are always outstanding.
	data := strings.Repeat(large, 40) + "*1\r\n$4\r\nPING\r\n"
	if _, err := commands(r, &pieces{data: data}); err != io.EOF {
		t.Fatal(err)
	}
	if got := cap(r.buf); got > bufferSize {
		t.Errorf("buffer of %d bytes after the last large command, want at most %d", got, bufferSize)
	}
}

func TestAnnouncedLengthCostsNoMemory(t *testing.T) {
	r := newReader(false)
	commands(r, &pieces{data: "*1024\r\n$1000000\r\nx"})
	if got := cap(r.buf); got > bufferSize {
		t.Errorf("buffer of %d bytes, want at most %d", got, bufferSize)
	}
}

func FuzzReader(f *testing.F) {
	for _, h := range hostile {
		f.Add([]byte(h), []byte{0, 3, 17}, false)
		f.Add([]byte(request("SEM.ACQUIRE", "k", "WAIT", "5")+h), []byte{1}, true)
	}
	f.Fuzz(func(t *testing.T, data, sizes []byte, anon bool) {
		whole, wholeErr := commands(newReader(anon), &pieces{data: string(data)})
		r := newReader(anon)
		split, splitErr := commands(r, &pieces{data: string(data), sizes: sizes})
		if !slices.Equal(whole, split) || wholeErr.Error() != splitErr.Error() {
			t.Errorf("whole: %v, %v; split: %v, %v", whole, wholeErr, split, splitErr)
		}
		var breach protocolError
		if splitErr != io.EOF && !errors.As(splitErr, &breach) {
			t.Errorf("ended with %v", splitErr)
		}
		if limit := 2*len(data) + 2*bufferSize; cap(r.buf) > limit {
			t.Errorf("%d bytes of buffer for %d bytes of input", cap(r.buf), len(data))
		}
	})
}
