package admin

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections are those that are open, at most so many: file descriptors are shared with the clients
// of the semaphores, who come first. Where there are too many, the one makes room that has been silent
// for longest: whoever connects and sends nothing, by mistake or on purpose, keeps no probe out.
type connections struct {
	most int

	mu     sync.Mutex
	open   map[net.Conn]*list.Element // its place among the silent; nil: its request is being answered
	silent *list.List                 // of net.Conn: no whole request yet, oldest first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: make(map[net.Conn]*list.Element), silent: list.New()}
}

// changed is told of every change of a connection's state, as http.Server.ConnState. A connection
// serves one request, so it is never idle.
func (cs *connections) changed(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if surplus := cs.enter(c); surplus != nil {
			_ = surplus.Close() // whoever reads from it sees that, and ends
		}
	case http.StateActive, http.StateIdle:
		cs.speaks(c)
	case http.StateClosed, http.StateHijacked:
		cs.leave(c)
	}
}

// enter registers a connection, and returns the one that makes room for it; nil: there is room. Where
// every other one is being answered, it is the new one itself.
func (cs *connections) enter(c net.Conn) (surplus net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.open[c] = cs.silent.PushBack(c)
	if len(cs.open) <= cs.most {
		return nil
	}
	surplus = cs.silent.Remove(cs.silent.Front()).(net.Conn)
	delete(cs.open, surplus)
	return surplus
}

// speaks notes that a connection has sent a request.
func (cs *connections) speaks(c net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if place := cs.open[c]; place != nil {
		cs.silent.Remove(place)
		cs.open[c] = nil
	}
}

func (cs *connections) leave(c net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if place := cs.open[c]; place != nil {
		cs.silent.Remove(place)
	}
	delete(cs.open, c)
}

// dismissSilent closes every connection on which no request has come.
func (cs *connections) dismissSilent() {
	cs.mu.Lock()
	var all []net.Conn
	for e := cs.silent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(net.Conn))
	}
	cs.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // as in changed
	}
}
