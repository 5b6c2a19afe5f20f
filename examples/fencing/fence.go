package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrStale refuses a write whose permit was followed by another in one of its slots, or that names a slot
// which does not exist.
var ErrStale = errors.New("the permit is stale: a newer holder has written in its slot")

// Fence guards the tables of a database by the permits of one semaphore. It may be used by many
// goroutines and processes at once.
type Fence struct {
	db        *sql.DB
	semaphore string
}

// NewFence makes the rows for slots 0 … capacity-1, if they are not there yet. That is to be done before
// anybody writes, and before a RESIZE up; new rows begin with the last token that was given out until then,
// so that they do not forget whom they refused.
func NewFence(ctx context.Context, db *sql.DB, semaphore string, capacity int, lastToken int64) (*Fence, error) {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS fence (
		semaphore TEXT, slot INTEGER, token INTEGER NOT NULL,
		PRIMARY KEY (semaphore, slot)
	)`)
	for slot := 0; err == nil && slot < capacity; slot++ {
		_, err = db.ExecContext(ctx, `INSERT INTO fence VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, semaphore, slot, lastToken)
	}
	if err != nil {
		return nil, fmt.Errorf("make the rows of the fence: %w", err)
	}
	return &Fence{db, semaphore}, nil
}

// Write writes in one transaction with the check: either the permit is as new as any that has written in
// each of its slots, or nothing is written and the error is ErrStale.
func (f *Fence) Write(ctx context.Context, token int64, slots []int64, write func(*sql.Tx) error) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // nothing after a commit
	for _, slot := range slots {
		raised, err := tx.ExecContext(ctx,
			`UPDATE fence SET token = ? WHERE semaphore = ? AND slot = ? AND token <= ?`, token, f.semaphore, slot, token)
		if err != nil {
			return fmt.Errorf("raise the token of slot %d: %w", slot, err)
		}
		if rows, err := raised.RowsAffected(); err != nil {
			return fmt.Errorf("raise the token of slot %d: %w", slot, err)
		} else if rows != 1 {
			return ErrStale
		}
	}
	if err := write(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
