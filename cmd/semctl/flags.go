package main

import (
	"time"
)

// keyArgument names the semaphore that a command is about.
type keyArgument struct {
	Name string `arg:"" complete:"semaphore" help:"Name of the semaphore."`
}

// holderArguments name a holder of a semaphore.
type holderArguments struct {
	keyArgument
	Holder string `arg:"" complete:"holder" help:"Id of the holder."`
}

// settingFlags are the settings of a semaphore. What is not given is not sent.
type settingFlags struct {
	Lease      *time.Duration `placeholder:"TIME" help:"Lease of a grant that names none."`
	MaxLease   *time.Duration `placeholder:"TIME" help:"Longest lease that may be asked for."`
	MaxHold    *time.Duration `placeholder:"TIME" help:"Age at which a grant ends, however often it was renewed."`
	Quarantine *time.Duration `placeholder:"TIME" help:"How long a permit whose lease expired stays out of circulation."`
	Idle       *time.Duration `placeholder:"TIME" help:"How long the semaphore is kept while nobody uses it."`
}

// words are the options to send.
func (f settingFlags) words() ([]any, error) {
	var w words
	w.duration("LEASE", "--lease", f.Lease)
	w.duration("MAXLEASE", "--max-lease", f.MaxLease)
	w.duration("MAXHOLD", "--max-hold", f.MaxHold)
	w.duration("QUARANTINE", "--quarantine", f.Quarantine)
	w.duration("IDLE", "--idle", f.Idle)
	return w.all, w.err
}

// words collects what is to be sent, and the first thing that cannot be.
type words struct {
	all []any
	err error
}

// duration adds an option in milliseconds, if it is given. What bounds it has is the server's to say.
func (w *words) duration(option, flag string, d *time.Duration) {
	switch {
	case d == nil || w.err != nil:
	case *d < 0:
		w.err = fail(exitUsage, "%s: %v is negative", flag, *d)
	case *d%time.Millisecond != 0:
		w.err = fail(exitUsage, "%s: %v is not a whole number of milliseconds", flag, *d)
	default:
		w.all = append(w.all, option, d.Milliseconds())
	}
}

// option adds an option whose value is not the zero value.
func option[V comparable](w *words, name string, value V) {
	var zero V
	if value != zero {
		w.all = append(w.all, name, value)
	}
}
