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
	maxScrapes        = 4 // at once; more are answered 503
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
)

// DefaultMaxClients is how many connections there may be without a flag.
const DefaultMaxClients = 256

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
	clients *connections
	http    http.Server
}

// New makes a server that asks engine whether it is ready and shows what metrics gathers. It keeps at
// most maxClients connections open, of one request each: probes and scrapes are seconds apart, and a
// connection that is kept in between is one that others cannot have. Errors of connections and scrapes
// are logged to log.
func New(engine Engine, metrics prometheus.Gatherer, maxClients int, log *slog.Logger) *Server {
	s := &Server{engine: engine, clients: newConnections(maxClients)}
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
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog,
		ConnState:         s.clients.changed,
	}
	s.http.SetKeepAlivesEnabled(false)
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
	s.clients.dismissSilent() // net/http would give each of them five seconds
	err := s.http.Shutdown(ctx)
	if err != nil && errors.Is(err, ctx.Err()) {
		err = s.http.Close()
	}
	if err != nil {
		return fmt.Errorf("shut down http: %w", err)
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
