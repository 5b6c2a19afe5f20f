package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// database is an empty database with a table that is guarded, for the length of the test.
func database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := openDatabase(filepath.Join(t.TempDir(), "report.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE report (token INTEGER)`); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestTableRefusesWhoeverWasFollowed goes through the table that the README of semserver shows.
func TestTableRefusesWhoeverWasFollowed(t *testing.T) {
	db := database(t)
	fence, err := NewFence(t.Context(), db, semaphore, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, c := range []struct {
		token int64
		slots []int64
		stale bool
	}{
		{100, []int64{0}, false},
		{101, []int64{1}, false},
		{105, []int64{0}, false},
		{100, []int64{0}, true},
		{105, []int64{0}, false}, // its own writes go on
		{110, []int64{0, 1}, false},
		{101, []int64{1}, true},
		{109, []int64{0, 1}, true},
		{120, []int64{2}, true},    // there is no such row
		{121, []int64{0, 2}, true}, // nor for all of these
		{115, []int64{0}, false},   // the refused write before has raised nothing
	} {
		err := fence.Write(t.Context(), c.token, c.slots, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO report VALUES (?)`, c.token)
			return err
		})
		if got := errors.Is(err, ErrStale); got != c.stale || err != nil && !got {
			t.Errorf("token %d, slots %v: got %v, want stale %v", c.token, c.slots, err, c.stale)
		}
		if !c.stale {
			written++
		}
	}
	var rows int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM report`).Scan(&rows); err != nil || rows != written {
		t.Errorf("rows: got %d and %v, want %d", rows, err, written)
	}
}

func TestWriteThatFailsRaisesNoToken(t *testing.T) {
	db := database(t)
	fence, err := NewFence(t.Context(), db, semaphore, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("no rows")
	if err := fence.Write(t.Context(), 200, []int64{0}, func(*sql.Tx) error { return why }); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if err := fence.Write(t.Context(), 100, []int64{0}, func(*sql.Tx) error { return nil }); err != nil {
		t.Errorf("got %v, want the older token to be as good as before", err)
	}
}

func TestRowsThatAreThereKeepTheirTokens(t *testing.T) {
	db := database(t)
	for _, capacity := range []int{1, 3} {
		fence, err := NewFence(t.Context(), db, semaphore, capacity, 50)
		if err != nil {
			t.Fatal(err)
		}
		if err := fence.Write(t.Context(), 100, []int64{0}, func(*sql.Tx) error { return nil }); err != nil {
			t.Errorf("capacity %d: got %v, want it written", capacity, err)
		}
	}
	var tokens string
	if err := db.QueryRowContext(t.Context(), `SELECT group_concat(token, ' ') FROM (SELECT token FROM fence ORDER BY slot)`).Scan(&tokens); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(100, 50, 50); tokens != want {
		t.Errorf("got tokens %s, want %s: a new row begins with the last token given out", tokens, want)
	}
}
