package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// maxPassword is the longest password, in bytes.
const maxPassword = 4096

// check refuses what cannot be, and completes what is left to the host: the node's label and the
// password. Of several faults it names the first.
func (f flags) check() (config, error) {
	c := config{flags: f}
	c.Peers.Join = split(c.Peers.Join)
	err := cmp.Or(
		c.checkAddresses(),
		c.Engine.check(),
		c.Peers.check(),
		c.Redis.check(),
		c.Limits.check(),
		c.Wire.check(),
	)
	if err != nil {
		return config{}, err
	}
	c.labelled = c.Engine.NodeID != ""
	if !c.labelled {
		if c.Engine.NodeID, err = os.Hostname(); err != nil {
			return config{}, fmt.Errorf("--node-id: the host has no name: %w", err)
		}
	}
	if c.Access.PasswordFile != "" {
		if c.password, err = firstLine(c.Access.PasswordFile, maxPassword); err != nil {
			return config{}, fmt.Errorf("--password-file: %w", err)
		}
	}
	if c.secret, err = c.Peers.secret(); err != nil {
		return config{}, err
	}
	if err := c.nodeConfig(nil, nil).Validate(); err != nil {
		return config{}, err
	}
	return c, nil
}

func (f flags) checkAddresses() error {
	if f.Addresses.Listen == "" && f.Addresses.Unix == "" {
		return errors.New("--listen and --unix are both empty: no client could connect")
	}
	used := map[string]string{}
	for _, a := range []struct{ flag, addr string }{
		{"--listen", f.Addresses.Listen}, {"--http", f.Addresses.HTTP}, {"--peer-listen", f.Peers.listen()},
	} {
		if err := checkAddress(a.flag, a.addr); err != nil {
			return err
		}
		if a.addr == "" || freePort(a.addr) {
			continue
		}
		if other, taken := used[a.addr]; taken {
			return fmt.Errorf("%s and %s are both %s", other, a.flag, a.addr)
		}
		used[a.addr] = a.flag
	}
	return nil
}

// checkAddress accepts host:port, and nothing.
func checkAddress(flag, addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %q is not host:port", flag, addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s: %q: the port is not a number from 0 to 65535", flag, addr)
	}
	return nil
}

func freePort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && port == "0"
}

func (f engineFlags) check() error {
	if f.DataDir == "" {
		return errors.New("--data-dir is empty")
	}
	if len(f.NodeID) > semaphore.MaxName {
		return fmt.Errorf("--node-id is longer than %d bytes", semaphore.MaxName)
	}
	return cmp.Or(
		within("--hold", f.Hold, time.Millisecond, time.Hour),
		within("--waiter-grace", f.WaiterGrace, time.Millisecond, time.Hour),
		within("--snapshot-bytes", f.SnapshotBytes, minSnapshot, maxSnapshot),
		within("--shutdown-timeout", f.ShutdownTimeout, 0, time.Hour),
	)
}

func (f limitFlags) check() error {
	err := cmp.Or(
		within("--max-waiters", f.MaxWaiters, 0, maxCount),
		within("--max-waiters-all", f.MaxWaitersAll, 0, maxCount),
		within("--max-semaphores", f.MaxSemaphores, 1, maxCount),
		within("--max-wait", f.MaxWait, 0, semaphore.MaxDuration),
		within("--max-lease", f.MaxLease, time.Millisecond, semaphore.MaxDuration),
		within("--default-lease", f.DefaultLease, time.Millisecond, semaphore.MaxDuration),
		within("--default-idle", f.DefaultIdle, time.Millisecond, semaphore.MaxDuration),
	)
	switch {
	case err != nil:
		return err
	case f.DefaultLease > f.MaxLease:
		return fmt.Errorf("--default-lease %s is longer than --max-lease %s", short(f.DefaultLease), short(f.MaxLease))
	case f.MaxWaiters > f.MaxWaitersAll:
		return fmt.Errorf("--max-waiters %d is more than --max-waiters-all %d", f.MaxWaiters, f.MaxWaitersAll)
	}
	return checkRules(f.DefaultCapacity)
}

func (f wireFlags) check() error {
	err := cmp.Or(
		within("--max-clients", f.MaxClients, 1, maxCount),
		within("--max-clients-per-address", f.MaxClientsPerAddress, 0, maxCount),
		within("--max-http-clients", f.MaxHTTPClients, 1, maxCount),
		within("--idle-timeout", f.IdleTimeout, 0, semaphore.MaxDuration),
		within("--handshake-timeout", f.HandshakeTimeout, 0, semaphore.MaxDuration),
		within("--write-timeout", f.WriteTimeout, 0, semaphore.MaxDuration),
		within("--max-output", f.MaxOutput, minBytes, maxBytes),
		within("--max-arguments", f.MaxArguments, minArguments, maxCount),
		within("--max-command", f.MaxCommand, minBytes, maxBytes),
		within("--max-inline", f.MaxInline, minBytes, maxBytes),
		within("--max-anonymous-arguments", f.MaxAnonymousArguments, minAnonymous, maxCount),
		within("--max-anonymous-bulk", f.MaxAnonymousBulk, 64, maxBytes),
		within("--max-read-ahead", f.MaxReadAhead, 1, maxBytes),
		within("--max-subscriptions", f.MaxSubscriptions, 0, maxCount),
	)
	switch {
	case err != nil:
		return err
	case f.MaxClientsPerAddress > f.MaxClients:
		return fmt.Errorf("--max-clients-per-address %d is more than --max-clients %d", f.MaxClientsPerAddress, f.MaxClients)
	case f.MaxInline > f.MaxCommand:
		return fmt.Errorf("--max-inline %d is more than --max-command %d", f.MaxInline, f.MaxCommand)
	}
	return nil
}

// Bounds of the bounds: below them no client could work, above them they bound nothing.
const (
	maxCount     = 1 << 30
	minSnapshot  = 64 << 10
	maxSnapshot  = 1 << 40
	minBytes     = 8 << 10 // a key, a holder and a label of 1,024 bytes each, with room to spare
	maxBytes     = 1 << 30
	minArguments = 32 // SEM.ACQUIRE with every option
	minAnonymous = 7  // HELLO 3 AUTH user password SETNAME name
)

// within refuses a value outside low … high.
func within[T int | int64 | time.Duration](flag string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %v is not within %v … %v", flag, value, low, high)
	}
	return nil
}

// firstLine reads the first line of a file, of which there must be one, of at most so many bytes.
func firstLine(path string, most int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	line := bufio.NewScanner(io.LimitReader(f, int64(most)+2))
	line.Scan()
	if err := line.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	switch text := line.Text(); {
	case text == "":
		return "", fmt.Errorf("%s: the first line is empty", path)
	case len(text) > most:
		return "", fmt.Errorf("%s: the first line is longer than %d bytes", path, most)
	default:
		return text, nil
	}
}
