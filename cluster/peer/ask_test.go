package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
)

// question is what the tests ask; answer is what a node answers.
type question struct {
	Text string
	Size int
}

func answer(ctx context.Context, asked json.RawMessage) (any, error) {
	var q question
	if err := json.Unmarshal(asked, &q); err != nil {
		return nil, err
	}
	if q.Text == "wait" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if q.Text == "fail" {
		return nil, errors.New(strings.Repeat("x", max(q.Size, 1)))
	}
	return strings.Repeat(q.Text, q.Size), nil
}

func TestAQuestionIsAnswered(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), start(t, "b", Config{Security: security})
			var got string
			who, err := a.Ask(t.Context(), b.Address(), question{"ab", 2}, &got)
			if err != nil || got != "abab" || who.Node != "b" {
				t.Errorf("got %q by %v, %v, want abab by b", got, who, err)
			}
			empty(t, a)
			empty(t, b)
		})
	}
}

func TestAnErrorIsAnAnswer(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	var got string
	who, err := a.Ask(t.Context(), b.Address(), question{"fail", 3}, &got)
	var refused *Refused
	if !errors.As(err, &refused) || refused.Reason != "xxx" || who.Node != "b" {
		t.Errorf("got %v by %v, want refused: xxx by b", err, who)
	}
}

func TestWhatIsTooLongToSayIsSaidToBe(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	for name, q := range map[string]question{
		"question": {strings.Repeat("q", maxMessage), 1},
		"answer":   {"a", maxMessage},
		"error":    {"fail", maxMessage},
	} {
		var got string
		_, err := a.Ask(t.Context(), b.Address(), q, &got)
		if err == nil || !strings.Contains(err.Error(), "message is too long: 655") || len(err.Error()) > 1000 {
			t.Errorf("%s: got %v, want that it is too long", name, err)
		}
	}
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	a, b := start(t, "a", Config{}), open(t, "b", Config{})
	thinking := make(chan struct{})
	b.is.Handle[Ask] = func(c net.Conn, _ Greeting) {
		defer c.Close()
		close(thinking)
		<-b.ctx.Done()
	}
	b.serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-thinking; cancel() }()
	if _, err := a.Ask(ctx, b.Address(), question{}, new(string)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// Whoever answers learns that nobody waits for it any more.
func TestAnAnswerEndsWhenTheAskerHasHungUp(t *testing.T) {
	for kind, security := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			a, b := start(t, "a", Config{Security: security}), open(t, "b", Config{Security: security})
			asked, ended := make(chan struct{}), make(chan error, 1)
			b.is.Handle[Ask] = func(c net.Conn, _ Greeting) {
				Answer(c, patience, func(ctx context.Context, text json.RawMessage) (any, error) {
					close(asked)
					_, err := answer(ctx, text)
					ended <- err
					return nil, err
				})
			}
			b.serve(t)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-asked; cancel() }()
			_, _ = a.Ask(ctx, b.Address(), question{"wait", 1}, new(string))
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
	}
}

// A question that was put to nobody can be put to somebody else.
func TestAQuestionThatReachedNobodyIsToldFromOneThatDid(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	var unasked Unasked
	silent := b.Address()
	if _, err := a.Ask(t.Context(), silent, question{"fail", 1}, new(string)); errors.As(err, &unasked) {
		t.Errorf("got %v of a node that was asked", err)
	}
	b.Close()
	if _, err := a.Ask(t.Context(), silent, question{"a", 1}, new(string)); !errors.As(err, &unasked) {
		t.Errorf("got %v, want that nobody was asked", err)
	}
}

func TestAnAnswerOfAnotherKindIsAnError(t *testing.T) {
	a, b := start(t, "a", Config{}), start(t, "b", Config{})
	if _, err := a.Ask(t.Context(), b.Address(), question{"a", 1}, new(int)); err == nil || !strings.Contains(err.Error(), "decode answer") {
		t.Errorf("got %v, want that it does not decode", err)
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "half a length": "\x00\x00", "cut": "\x00\x00\x00\x09{}", "no JSON": "\x00\x00\x00\x02xx",
		"forged length": "\xff\xff\xff\xff{}",
	} {
		if m, err := readMessage(bytes.NewReader([]byte(text))); err == nil {
			t.Errorf("%s: got %v, want an error", name, m)
		}
	}
}
