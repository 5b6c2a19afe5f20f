package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semserver/semserver/tests/internal/resp"
)

// askTimeout is how long a node may take to say what it is.
const askTimeout = time.Second

// Role is what the node at an address says of itself, and its term.
func Role(addr string) (role string, term int64, err error) {
	fields, err := ask(addr)
	if err != nil {
		return "", 0, err
	}
	term, err = strconv.ParseInt(fields["raft_term"], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("raft_term: %w", err)
	}
	return fields["raft_role"], term, nil
}

// Applied is the index of the last entry that the node at an address has applied.
func Applied(addr string) (int64, error) {
	fields, err := ask(addr)
	if err != nil {
		return 0, err
	}
	index, err := strconv.ParseInt(fields["raft_applied_index"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("raft_applied_index: %w", err)
	}
	return index, nil
}

// ask returns what a node says of its part in the cluster.
func ask(addr string) (map[string]string, error) {
	c, err := resp.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Send("INFO", "raft"); err != nil {
		return nil, err
	}
	reply, err := c.Receive(askTimeout)
	if err != nil {
		return nil, err
	}
	text, ok := reply.(string)
	if !ok {
		return nil, fmt.Errorf("INFO raft: %v", reply)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
