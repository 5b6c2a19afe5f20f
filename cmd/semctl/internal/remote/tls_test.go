package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/semserver/semserver/internal/trial"
)

func TestServersAreReachedByTLS(t *testing.T) {
	// The certificate of net/http's tests, which is good for 127.0.0.1.
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
	if err != nil {
		t.Fatal(err)
	}
	f := trial.ServeOn(t, l, always(say1))
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	trusting := Open(Config{Addrs: []string{f.Addr()}, TLS: &tls.Config{RootCAs: pool}, Patience: trial.Patience})
	defer trusting.Close()
	distrusting := Open(Config{Addrs: []string{f.Addr()}, TLS: &tls.Config{}, Patience: 200 * time.Millisecond})
	defer distrusting.Close()

	if got, err := trusting.Do(t.Context(), Words("SEM.HELP")); got.Value != any(int64(1)) || err != nil {
		t.Errorf("got %v, %v, want 1", got, err)
	}
	if _, err := distrusting.Do(t.Context(), Words("SEM.HELP")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an unknown certificate: got %v, want ErrUnavailable", err)
	}
}
