package link

import (
	"sync"

	"github.com/semserver/semserver/redisbackend/script"
)

const (
	// maxBatch and maxBatchArgs bound what travels at once, so that no call waits long for the reply to
	// another.
	maxBatch     = 256
	maxBatchArgs = 50_000
	// maxTries is how often a call is sent that was certainly not executed, because the server did not know
	// the script or not this server had the slot.
	maxTries = 5
)

// order is a call on its way.
type order struct {
	script.Call
	done  func(reply any, err error)
	tries int
	ask   bool // the server is asked to take it although the slot is not its own yet
}

// weight is the number of its arguments.
func (o *order) weight() int { return len(o.Keys) + len(o.Args) }

// queue is what waits to be sent to a server.
type queue struct {
	mu     sync.Mutex
	orders []*order
	closed bool
	wake   chan struct{} // holds one element while there may be orders
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// put adds an order; false: the queue is closed.
func (q *queue) put(o *order) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.orders = append(q.orders, o)
	q.signal()
	return true
}

// back puts orders that were taken in front again.
func (q *queue) back(orders []*order) {
	if len(orders) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.orders = append(append([]*order(nil), orders...), q.orders...)
	q.signal()
}

// take moves the next batch into the buffer, which may be empty.
func (q *queue) take(batch []*order) []*order {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch = batch[:0]
	args := 0
	for _, o := range q.orders {
		if args += o.weight(); len(batch) > 0 && (len(batch) == maxBatch || args > maxBatchArgs) {
			break
		}
		batch = append(batch, o)
	}
	rest := copy(q.orders, q.orders[len(batch):])
	clear(q.orders[rest:])
	q.orders = q.orders[:rest]
	if rest > 0 {
		q.signal()
	}
	return batch
}

// signal wakes one of those who wait.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close lets nothing more in and returns what was left.
func (q *queue) close() []*order {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	left := q.orders
	q.orders = nil
	return left
}

// command is the call as Redis reads it.
func (o *order) command() []any {
	all := make([]any, 0, 3+o.weight())
	all = append(all, "evalsha", o.Script.SHA, len(o.Keys))
	for _, k := range o.Keys {
		all = append(all, k)
	}
	for _, a := range o.Args {
		all = append(all, a)
	}
	return all
}
