package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/semserver/semserver/client"
	_ "modernc.org/sqlite"
)

// The guarded resource, and what a writer needs to know.
const (
	semaphore = "report"
	capacity  = 1
	lease     = time.Second
)

// openDatabase opens the file. Writers take turns in it: a transaction locks it from its beginning.
func openDatabase(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
}

// runWriter is the process of a holder: it gets a permit, says so, waits for a line on its input, and writes
// a row. It does so whether or not it still holds the permit, as code does that was paused between its
// last look and the write.
func runWriter(ctx context.Context, addr, path, name string, in io.Reader, out io.Writer) error {
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := client.New(client.Config{Addrs: []string{addr}})
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.Acquire(ctx, semaphore, client.Capacity(capacity), client.Wait(time.Minute), client.Lease(lease), client.Label(name))
	if err != nil {
		return err
	}
	defer p.Release()
	fmt.Fprintf(out, "holds slot %d with token %d\n", p.Slot(), p.Token())
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the word to write: %w", err)
	}

	fence := &Fence{db, semaphore}
	err = fence.Write(ctx, p.Token(), slotsOf(p), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO report (writer, token) VALUES (?, ?)`, name, p.Token())
		return err
	})
	switch {
	case errors.Is(err, ErrStale):
		fmt.Fprintf(out, "refused: %v\n", err)
	case err != nil:
		return err
	default:
		fmt.Fprintln(out, "written")
	}
	return nil
}

// slotsOf are all places that a permit occupies.
func slotsOf(p *client.Permit) []int64 {
	var slots []int64
	for _, run := range p.Slots() {
		for slot := run.First; slot <= run.Last; slot++ {
			slots = append(slots, slot)
		}
	}
	return slots
}
