package redisbackend

import (
	"sync/atomic"
	"time"

	"github.com/semserver/semserver/redisbackend/script"
	"github.com/semserver/semserver/semaphore"
)

// errand is a run of requests for one semaphore that somebody waits for.
type errand struct {
	replies []semaphore.Reply
	left    atomic.Int64
	done    chan struct{} // closed when there is a reply for each
}

// item is one request at a desk.
type item struct {
	request semaphore.Request
	ticket  semaphore.Ticket
	since   time.Time
	waiter  *waiter          // of an Acquire with a WAIT
	errand  *errand          // nil: nobody waits for the reply
	index   int              // of the reply in the errand
	told    bool             // it has been answered
	served  bool             // of a Resize that took effect: the line is served before it is answered
	sum     semaphore.Number // what the calls of a Reconcile have put back so far

	doubtful bool            // a call that was lost may have carried it out
	then     func(weak bool) // of one that undoes: what goes on when it has happened
}

// shares says whether a request shares calls with others.
func shares(r semaphore.Request) bool {
	switch r.(type) {
	case semaphore.Acquire, semaphore.Release, semaphore.Renew, semaphore.Check, script.GiveBack:
		return true
	}
	return false
}

// answered reports whether whoever asked has been told what became of it.
func (i *item) answered() bool {
	if i.apart() {
		return i.waiter.told
	}
	return i.told
}

// apart says that Do has returned, and that the reply is expected by the waiter.
func (i *item) apart() bool { return i.waiter != nil && i.waiter.apart }

// answer tells whoever asked. Only the first answer counts.
func (i *item) answer(r semaphore.Reply) {
	if i.apart() {
		i.waiter.tell(r)
		return
	}
	i.reply(r)
}

func (i *item) reply(r semaphore.Reply) {
	if i.told || i.errand == nil {
		return
	}
	i.told = true
	i.errand.replies[i.index] = r
	if i.errand.left.Add(-1) == 0 {
		close(i.errand.done)
	}
}

// part lets Do return while the request is undecided or stands in line.
func (i *item) part(wait *semaphore.Waiting) {
	i.reply(semaphore.Reply{Value: wait})
	i.waiter.apart = true
}

// holder is whom the request is about, or "".
func (i *item) holder() string {
	switch r := i.request.(type) {
	case semaphore.Acquire:
		return r.Holder
	case semaphore.Release:
		return r.Holder
	case semaphore.Renew:
		return r.Holder
	case semaphore.Cancel:
		return r.Holder
	case semaphore.Check:
		return r.Holder
	case script.GiveBack:
		return r.Holder
	}
	return ""
}

// uncertain is the reply to a request of which it is not known in time what became of it.
func (i *item) uncertain() semaphore.Reply {
	return semaphore.Reply{Err: semaphore.Uncertain(i.holder())}
}

// abandoned says that nobody waits for what the request may get.
func (i *item) abandoned() bool {
	if i.undoes() {
		return false
	}
	return i.answered() || i.apart() && i.waiter.leaving
}

// undoes says that the request gives back what an Acquire may have got. Its waiter, if it has one,
// leaves the line by it.
func (i *item) undoes() bool {
	_, ok := i.request.(script.GiveBack)
	return ok
}
