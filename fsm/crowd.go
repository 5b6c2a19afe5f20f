package fsm

// few is up to how many members of a crowd are searched one by one; beyond, there is an index.
const few = 16

// member is what a crowd can hold: somebody's grant or place in line.
type member[T any] interface {
	ranked[T]
	holder() string
	latest(other T) bool
}

// crowd is those who hold, or those who wait, on one semaphore: found by what falls due first, and by
// holder.
type crowd[T member[T]] struct {
	heap     heap[T]
	byHolder *index[T] // nil while there are few
}

func (c *crowd[T]) len() int { return len(c.heap) }

// first returns who falls due first. There must be somebody.
func (c *crowd[T]) first() T { return c.heap[0] }

// find returns the latest member under a holder's id, or nil.
func (c *crowd[T]) find(holder string) (found T) {
	if c.byHolder != nil {
		return c.byHolder.find(holder)
	}
	var none T
	for _, x := range c.heap {
		if x.holder() == holder && (found == none || x.latest(found)) {
			found = x
		}
	}
	return found
}

func (c *crowd[T]) add(x T) {
	c.heap.push(x)
	if c.byHolder != nil {
		c.byHolder.put(x)
		return
	}
	if len(c.heap) <= few {
		return
	}
	c.byHolder = newIndex[T]()
	var none T
	for _, x := range c.heap {
		// A holder can have an ended grant, not yet taken out, beside its live one.
		if other := c.byHolder.find(x.holder()); other == none || x.latest(other) {
			c.byHolder.put(x)
		}
	}
}

func (c *crowd[T]) remove(x T) {
	c.heap.remove(x)
	if c.byHolder == nil {
		return
	}
	c.byHolder.remove(x)
	if len(c.heap) <= few/2 {
		c.byHolder = nil
	}
}

// replace puts a copy of x in its place.
func (c *crowd[T]) replace(x, copied T) {
	c.heap.set(int(*x.place()), copied)
	if c.byHolder != nil {
		c.byHolder.replace(x, copied)
	}
}
