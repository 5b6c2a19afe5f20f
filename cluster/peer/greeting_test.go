package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHellosThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":       {"", "EOF"},
		"short":         {"sem", "unexpected EOF"},
		"http":          {"GET / HTTP/1.1", "another protocol"},
		"TLS":           {"\x16\x03\x01\x02\x00\x01", "peer speaks with TLS"},
		"other version": {"semp\x02f", "peer speaks version 2"},
		"no length":     {"semp\x01f", "EOF"},
		"too long":      {"semp\x01f\xff\xff", "greeting of 65535 bytes: at most 4096"},
		"cut":           {"semp\x01f\x00\x09{}", "unexpected EOF"},
		"no JSON":       {"semp\x01f\x00\x02xx", "decode greeting"},
		"another JSON":  {"semp\x01f\x00\x02[]", "decode greeting"},
		"no text":       {"semp\x01f\x00\x00", "decode greeting"},
	} {
		if _, _, err := readHello(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":  {"", "EOF"},
		"redis":    {"-ERR unknown command", "another protocol"},
		"TLS":      {"\x15\x03\x03\x00\x02\x02\x28", "peer speaks with TLS"},
		"too long": {"n\xff\xff", "greeting of 65535 bytes"},
		"cut":      {"y\x00\x09{}", "unexpected EOF"},
	} {
		if _, err := readAnswer(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestAGreetingThatIsTooLongIsNotSent(t *testing.T) {
	var sent bytes.Buffer
	err := writeHello(&sent, Forward, Greeting{Node: strings.Repeat("n", maxGreeting)})
	if err == nil || sent.Len() != 0 {
		t.Errorf("got %v and %d bytes, want an error and none", err, sent.Len())
	}
}

// A reason may quote what a peer has sent.
func TestEveryReasonFits(t *testing.T) {
	for _, text := range []string{"x", "\x00", "<", "ü", "\xff", "\u2028"} {
		var sent bytes.Buffer
		reason := strings.Repeat(text, 70000)
		if err := writeRefusal(&sent, reason); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		_, err := readAnswer(&sent)
		var refused *Refused
		if !errors.As(err, &refused) || !strings.HasPrefix(reason, refused.Reason) || !utf8.ValidString(refused.Reason) {
			t.Errorf("%q: got %v, want its beginning", text, err)
		}
	}
}

// Whatever comes, nothing of it makes a reader panic, take more than it may, or change on its way.
func FuzzWhatPeersSend(f *testing.F) {
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return writeHello(b, Forward, Greeting{"c", "n", "a:1"}) },
		func(b *bytes.Buffer) error { return writeWelcome(b, Greeting{"c", "n", "a:1"}) },
		func(b *bytes.Buffer) error { return writeRefusal(b, "no") },
		func(b *bytes.Buffer) error {
			return writeMessage(b, message{Error: "no", Body: json.RawMessage(`{"a":[1]}`)})
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bytes.NewReader(sent)
		if p, g, err := readHello(r); err == nil {
			checkHello(t, p, g)
		}
		if got := len(sent) - r.Len(); got > len(magic)+4+maxGreeting {
			t.Errorf("hello: got %d bytes read", got)
		}
		r.Reset(sent)
		if g, err := readAnswer(r); err == nil {
			checkHello(t, Forward, g)
		}
		if got := len(sent) - r.Len(); got > 3+maxGreeting {
			t.Errorf("answer: got %d bytes read", got)
		}
		r.Reset(sent)
		if _, err := readMessage(r); err != nil && errors.Is(err, errTooLong) && len(sent)-r.Len() != 4 {
			t.Errorf("message: got %d bytes read, want none behind the length", len(sent)-r.Len()-4)
		}
	})
}

// checkHello sends a greeting on, which may be too long once it is escaped.
func checkHello(t *testing.T, p Purpose, g Greeting) {
	t.Helper()
	var b bytes.Buffer
	if writeHello(&b, p, g) != nil {
		return
	}
	if p2, g2, err := readHello(&b); err != nil || p2 != p || g2 != g {
		t.Errorf("got %v %v, %v, want %v %v", p2, g2, err, p, g)
	}
}
