package cluster

import (
	"bufio"
	"context"
	"testing"
	"time"

	"github.com/semserver/semserver/cluster/peer"
	"github.com/semserver/semserver/fsm"
	"github.com/semserver/semserver/semaphore"
)

// TestLeaderEndsAStreamThatMakesNoSense says what a member must not say, each on a stream of its own: the
// leader ends that stream, and goes on for the others.
func TestLeaderEndsAStreamThatMakesNoSense(t *testing.T) {
	leader, followers := roles(t, several(t, 3))
	held(t, leader)
	const life = 77
	hello := appendNumber(nil, frameHello, life)
	foreign := fsm.AppendRequest(nil, semaphore.Release{Key: "k", Holder: "a"})
	section := func(incarnation uint64, requests []byte) []byte {
		p := fsm.Part{Incarnation: incarnation, First: 1, Requests: 1}
		return appendFrame(nil, frameSection, append(fsm.AppendSection(nil, p, semaphore.DefaultLimits(), len(requests)), requests...))
	}
	for name, said := range map[string][]byte{
		"no hello":                    appendFrame(nil, framePing, nil),
		"half a hello":                appendFrame(nil, frameHello, []byte{1}),
		"a frame without a kind":      {0, 0, 0, 0},
		"a frame that is too long":    {255, 255, 255, 255, byte(frameHello)},
		"a kind that nobody knows":    append(hello[:len(hello):len(hello)], appendFrame(nil, 99, nil)...),
		"requests of another node":    append(hello[:len(hello):len(hello)], section(life+1, foreign)...),
		"requests that nobody can do": append(hello[:len(hello):len(hello)], section(life, []byte{200, 1, 2})...),
		"an answer":                   append(hello[:len(hello):len(hello)], appendAnswer(nil, fsm.Section{First: 1})...),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c, _, err := followers[0].network.Dial(ctx, leader.network.Address(), peer.Forward)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(said); err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			in, buffer := bufio.NewReader(c), []byte(nil)
			for {
				if kind, _, err := readFrame(in, &buffer, func() {}); err != nil {
					break
				} else if kind == frameAnswer {
					t.Error("answered")
				}
			}
			if !time.Now().Before(deadlineOf(ctx)) {
				t.Error("the stream is still open")
			}
		})
	}
	if got := inform(t, followers[1]); got.Holders != 1 {
		t.Errorf("got %d holders, want a to hold its permit", got.Holders)
	}
}

func deadlineOf(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}
