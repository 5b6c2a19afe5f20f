package main

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	bearable = 8                      // loads at a time that the database can bear
	loadTime = 200 * time.Millisecond // how long one of them takes
)

// database is the stand-in. It breaks down under too many loads at a time: then all that are under way
// fail, and all that come.
type database struct {
	addr   string
	server *http.Server
	began  func(pod string) // called when a pod has begun to load

	mu      sync.Mutex
	loading int
	most    int // that loaded at a time
	broken  bool
}

// openDatabase serves loads on a free port of this machine.
func openDatabase(began func(pod string)) (*database, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &database{addr: l.Addr().String(), began: began}
	d.server = &http.Server{Handler: http.HandlerFunc(d.load)}
	go d.server.Serve(l) // until it is closed
	return d, nil
}

func (d *database) close() error { return d.server.Close() }

// load answers one pod.
func (d *database) load(w http.ResponseWriter, r *http.Request) {
	d.enter()
	defer d.leave()
	d.began(r.URL.Query().Get("pod"))
	select {
	case <-time.After(loadTime):
	case <-r.Context().Done(): // the pod is gone
		return
	}
	if d.isBroken() {
		http.Error(w, "out of memory", http.StatusServiceUnavailable)
	}
}

func (d *database) enter() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loading++
	d.most = max(d.most, d.loading)
	d.broken = d.broken || d.loading > bearable
}

func (d *database) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loading--
}

func (d *database) isBroken() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// looked returns the most loads that there were at a time.
func (d *database) looked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most
}
