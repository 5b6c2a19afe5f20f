package server

import "sync"

// bufferSize is the size of the buffers that connections borrow while they are at work. It holds a
// pipeline of some sixty commands.
const bufferSize = 8 << 10

// bufferPool lends buffers to connections that are at work, so that silent ones need none.
type bufferPool struct {
	pool sync.Pool
}

// get returns an empty buffer of at least bufferSize.
func (p *bufferPool) get() []byte {
	if b, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return b[:0]
	}
	return make([]byte, 0, bufferSize)
}

// put takes a buffer back. One that has grown is left to the collector, so that no connection pays
// for what another once needed.
func (p *bufferPool) put(b []byte) {
	if cap(b) == bufferSize {
		p.pool.Put((*[bufferSize]byte)(b[:bufferSize]))
	}
}
