package link

import "context"

// single is a fleet of one server, at one address.
type single struct{ only *node }

func openSingle(l *Link) *single {
	addr := l.options.Target.Addrs[0]
	return &single{l.newNode(func(context.Context) (string, error) { return addr, nil }, func() {})}
}

func (s *single) node(string) *node         { return s.only }
func (s *single) nodes() []*node            { return []*node{s.only} }
func (s *single) ready() error              { return s.only.ready() }
func (s *single) move(string, string) *node { return nil }
func (s *single) peek(string) *node         { return nil }
func (s *single) first(ctx context.Context) { firstOf(ctx, s.nodes()) }
func (s *single) start()                    {}
func (s *single) look()                     {}
func (s *single) close()                    { s.only.close(errClosed) }
