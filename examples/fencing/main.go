package main

import (
	"bufio"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7360", "address of the semserver")
	path := flag.String("db", "", "database file (default: a new one, removed at the end)")
	writer := flag.String("writer", "", "be the writer of this name (the story starts itself so)")
	flag.Parse()
	if err := run(*addr, *path, *writer); err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		os.Exit(1)
	}
}

func run(addr, path, writer string) error {
	ctx := context.Background()
	if writer != "" {
		return runWriter(ctx, addr, path, writer, os.Stdin, os.Stdout)
	}
	if path == "" {
		folder, err := os.MkdirTemp("", "fencing-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		path = filepath.Join(folder, "report.db")
	}
	return tell(ctx, addr, path, os.Stdout)
}

// tell is the story of two writers, one of which is paused past its lease.
func tell(ctx context.Context, addr, path string, out io.Writer) error {
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS report (writer TEXT, token INTEGER)`); err != nil {
		return fmt.Errorf("make the table: %w", err)
	}
	if _, err := NewFence(ctx, db, semaphore, capacity, 0); err != nil {
		return err
	}

	slow, err := begin(addr, path, "slow", out)
	if err != nil {
		return err
	}
	defer slow.end()
	fmt.Fprintln(out, "slow is paused for longer than its lease")
	if err := slow.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	quick, err := begin(addr, path, "quick", out) // gets the permit when the lease of slow is over
	if err != nil {
		return err
	}
	defer quick.end()
	if err := quick.write(); err != nil {
		return err
	}
	fmt.Fprintln(out, "slow goes on, and knows nothing")
	if err := slow.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue: %w", err)
	}
	if err := slow.write(); err != nil {
		return err
	}
	return show(ctx, db, out)
}

func show(ctx context.Context, db *sql.DB, out io.Writer) error {
	rows, err := db.QueryContext(ctx, `SELECT writer, token FROM report ORDER BY rowid`)
	if err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var writer string
		var token int64
		if err := rows.Scan(&writer, &token); err != nil {
			return fmt.Errorf("read the report: %w", err)
		}
		fmt.Fprintf(out, "the report has a row of %s, token %d\n", writer, token)
	}
	return rows.Err()
}

// process is a writer under way.
type process struct {
	*exec.Cmd
	name  string
	in    io.WriteCloser
	lines *bufio.Reader
	out   io.Writer
}

// begin starts a writer and waits until it holds a permit.
func begin(addr, path, name string, out io.Writer) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{Cmd: exec.Command(self, "-addr", addr, "-db", path, "-writer", name), name: name, out: out}
	p.Stderr = os.Stderr
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewReader(stdout)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.hear(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// hear passes on what the writer says next.
func (p *process) hear() error {
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("hear %s: %w", p.name, err)
	}
	_, err = fmt.Fprintf(p.out, "%s: %s", p.name, line)
	return err
}

// write tells the writer to write, and passes on how that went.
func (p *process) write() error {
	if _, err := io.WriteString(p.in, "write\n"); err != nil {
		return fmt.Errorf("tell %s to write: %w", p.name, err)
	}
	return p.hear()
}

// end lets the writer end, whatever state it is in.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.Process.Signal(syscall.SIGCONT)
	_ = p.Wait() // it may have been refused
}
