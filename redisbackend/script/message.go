package script

import (
	"fmt"
	"strconv"
	"strings"
)

// News is what a message is about.
type News string

// What is published.
const (
	Permit  News = "permit"  // permits are reserved for the first waiter of the server that is named
	Changed News = "changed" // the semaphore was resized, or permits came into circulation
	Deleted News = "deleted" // the semaphore is no more
)

// Message is what a script publishes about a semaphore.
type Message struct {
	News  News
	To    uint64 // the server that it is for; 0: all
	From  uint64 // the server whose call it was
	Token int64  // the latest token of the semaphore
	Key   string
}

// ParseMessage reads a message.
func ParseMessage(payload string) (Message, error) {
	parts := strings.SplitN(payload, " ", 5)
	if len(parts) != 5 {
		return Message{}, fmt.Errorf("read a message: got %d words, want 5", len(parts))
	}
	m := Message{News: News(parts[0]), Key: parts[4]}
	var err error
	if parts[1] != "*" {
		if m.To, err = server(parts[1]); err != nil {
			return Message{}, err
		}
	}
	if m.From, err = server(parts[2]); err != nil {
		return Message{}, err
	}
	if m.Token, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return Message{}, fmt.Errorf("read a message: token: %w", err)
	}
	return m, nil
}

// server reads how scripts name a server.
func server(name string) (uint64, error) {
	number, ours := strings.CutPrefix(name, "@")
	id, err := strconv.ParseUint(number, 36, 64)
	if err != nil || !ours {
		return 0, fmt.Errorf("read a message: %q names no server", name)
	}
	return id, nil
}
