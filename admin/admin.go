package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the HTTP side. Its clients are probes and scrapers: few, quick and small.
const (
	maxHeaderBytes    = 8 << 10
	maxConnections    = 128
	maxScrapes        = 4 // at once; more are answered 503
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
)

// Engine is what this package needs to know of the engine.
type Engine interface {
	// Ready returns nil while the engine can decide requests, else the reason why it cannot. It is
	// called from many goroutines and must not block.
	Ready() error
}

// Server answers probes and scrapes. Its methods may be called from any goroutine.
type Server struct {
	engine  Engine
	leaving atomic.Bool
	open    atomic.Int64 // connections
	http    http.Server
}

// New makes a server that asks engine whether it is ready and shows what metrics gathers. Errors of
// connections and scrapes are logged to log.
func New(engine Engine, metrics prometheus.Gatherer, log *slog.Logger) *Server {
	s := &Server{engine: engine}
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	s.http = http.Server{
		Handler: s.routes(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
			ErrorLog:            errorLog,
			ErrorHandling:       promhttp.ContinueOnError,
			MaxRequestsInFlight: maxScrapes,
			Timeout:             writeTimeout - time.Second,
		})),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog,
		ConnState:         s.capConnections,
	}
	return s
}

// Serve answers on l, which it closes, until Shutdown is called; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// Leave makes /readyz answer 503 from now on, whatever the engine says.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown stops accepting, lets the requests under way finish while ctx lasts, and then closes
// every connection.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("shut down http: %w", err), s.http.Close())
	}
	return nil
}

func (s *Server) routes(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.ready(); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	return mux
}

func (s *Server) ready() error {
	if s.leaving.Load() {
		return errors.New("the server is stopping")
	}
	return s.engine.Ready()
}

// answer writes one line. A probe wants the present state, so nobody on the way may keep it.
func answer(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // a probe that hung up needs no answer
}

// capConnections closes what exceeds the cap at once: file descriptors are shared with the clients
// of the semaphores, who come first.
func (s *Server) capConnections(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.open.Add(1) > maxConnections {
			_ = c.Close() // the server's read fails and it counts the connection as closed
		}
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}
