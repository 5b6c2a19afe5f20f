package fsm

// ranked is what a heap can hold: it knows its rank, and remembers where in the heap it stands.
type ranked[T any] interface {
	comparable
	before(other T) bool
	place() *int32
}

// outside is the place of what stands in no heap.
const outside = -1

// heap is a binary heap with the first of all at index 0. Ranks are total orders, so that which
// element comes first does not depend on how the heap was built.
type heap[T ranked[T]] []T

func (h *heap[T]) push(x T) {
	*x.place() = int32(len(*h))
	*h = append(*h, x)
	h.up(len(*h) - 1)
}

func (h *heap[T]) remove(x T) {
	at, end := int(*x.place()), len(*h)-1
	moved := (*h)[end]
	var none T
	(*h)[end] = none
	*h = (*h)[:end]
	*x.place() = outside
	if at < end {
		h.set(at, moved)
		h.fix(moved)
	}
	// A heap that was large once gives its memory back.
	if c := cap(*h); c > 64 && end < c/4 {
		*h = append(make(heap[T], 0, c/2), *h...)
	}
}

// fix restores the order after x has changed its rank.
func (h *heap[T]) fix(x T) {
	at := int(*x.place())
	h.up(at)
	h.down(int(*x.place()))
}

func (h *heap[T]) set(at int, x T) {
	(*h)[at] = x
	*x.place() = int32(at)
}

func (h *heap[T]) up(at int) {
	x := (*h)[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !x.before((*h)[parent]) {
			break
		}
		h.set(at, (*h)[parent])
		at = parent
	}
	h.set(at, x)
}

func (h *heap[T]) down(at int) {
	x := (*h)[at]
	for {
		child := 2*at + 1
		if child+1 < len(*h) && (*h)[child+1].before((*h)[child]) {
			child++
		}
		if child >= len(*h) || !(*h)[child].before(x) {
			break
		}
		h.set(at, (*h)[child])
		at = child
	}
	h.set(at, x)
}

// prefix calls visit for elements from the root down. Where visit returns false it does not go on to
// those below, none of which comes before the one visited.
func (h heap[T]) prefix(visit func(x T) bool) {
	stack := []int{0}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at < len(h) && visit(h[at]) {
			stack = append(stack, 2*at+1, 2*at+2)
		}
	}
}
