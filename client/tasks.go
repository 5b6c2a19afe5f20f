package client

import "sync"

// tasks are goroutines with one owner, who can stop taking new ones and wait for the rest.
type tasks struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// Go runs f, unless the tasks were closed.
func (t *tasks) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(f)
	return true
}

// close takes no more tasks and waits for those that run.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wg.Wait()
}
