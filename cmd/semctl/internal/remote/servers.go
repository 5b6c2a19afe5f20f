package remote

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config says which servers there are.
type Config struct {
	Addrs    []string // as ParseAddr returns them; at least one
	Password string
	Name     string        // how the connections call themselves
	TLS      *tls.Config   // nil: plain
	Patience time.Duration // how long to look for a server that answers
}

// Servers are several servers used as one: the next one is asked when one cannot be reached, has no
// leader or is stopping. It may be used concurrently.
type Servers struct {
	cfg     Config
	clients []*client
	current atomic.Int64   // the client that answered last
	asking  sync.WaitGroup // requests under way, also those that nobody waits for any more

	mu     sync.Mutex
	closed bool // nothing is added to asking any more
}

// Open prepares to use servers. Nothing is sent before the first command.
func Open(cfg Config) *Servers {
	s := &Servers{cfg: cfg}
	for _, addr := range cfg.Addrs {
		s.clients = append(s.clients, newClient(addr, cfg))
	}
	return s
}

// Close closes the connections. A request that waits in line leaves it.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.clients {
		_ = c.Close() // nothing is lost: whoever wanted an answer has it
	}
	s.asking.Wait()
}

// start runs a request that Close waits for. It reports false, and does not, once the servers are
// closed.
func (s *Servers) start(request func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.asking.Go(request)
	return true
}

// Command is one request.
type Command struct {
	// Args returns the words to send. It is called for every attempt, so that a wait can grow shorter.
	Args func() []any
	// Blocks is how long the server may take by request of the command (WAIT).
	Blocks time.Duration
	// Once forbids another attempt when an answer was lost.
	Once bool
	// Reads says that it changes nothing: a lost answer leaves no doubt.
	Reads bool
	// Local says that a server which cannot decide, having no leader, answers it all the same.
	Local bool
}

// Words is a command that is always the same.
func Words(args ...any) Command {
	return Command{Args: func() []any { return args }}
}

// Question is a command that is always the same, and changes nothing.
func Question(args ...any) Command {
	return Command{Args: func() []any { return args }, Reads: true}
}

// Reply is an answer.
type Reply struct {
	Value any // nil, int64, string or []any
	// Doubtful says that the answer to an earlier attempt was lost: what is asked for may have been
	// done by that one.
	Doubtful bool
}

// Do sends a command, to one server after the other until one answers or the patience is used up. The
// error is a *Refusal, wraps ErrUnavailable or ErrUnknown, or is the context's. When the context ends
// the answer is not waited for.
func (s *Servers) Do(ctx context.Context, c Command) (Reply, error) {
	var value any
	doubtful, err := s.try(ctx, c, func(ctx context.Context, asked *client) (err error) {
		value, err = refusal(asked.Do(ctx, c.Args()...).Result())
		return err
	})
	if err != nil {
		return Reply{}, err
	}
	return Reply{value, doubtful}, nil
}

// Read sends commands that change nothing, in one pipeline. What it returns for each is the value of
// its reply, or a *Refusal. The error is as that of Do.
func (s *Servers) Read(ctx context.Context, commands ...[]any) ([]any, error) {
	var values []any
	_, err := s.try(ctx, Command{Reads: true}, func(ctx context.Context, asked *client) error {
		pipeline := asked.Pipeline()
		for _, words := range commands {
			pipeline.Do(ctx, words...)
		}
		// The error is that of the first command that has one; each is looked at below.
		replies, _ := pipeline.Exec(ctx)
		values = make([]any, len(replies))
		for i, r := range replies {
			value, err := refusal(r.(*redis.Cmd).Result())
			if judge(err) != answered {
				return err
			}
			values[i] = value
			if err != nil {
				values[i] = err
			}
		}
		return nil
	})
	return values, err
}
