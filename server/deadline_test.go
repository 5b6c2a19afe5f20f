package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineInForceIsKeptWhileItIsNearlyRight(t *testing.T) {
	now := time.Unix(1000, 0)
	const patience = 8 * time.Second
	fresh := now.Add(patience)
	for left, want := range map[time.Duration]time.Time{
		8 * time.Second:              fresh,
		8*time.Second + 1:            fresh,
		7*time.Second + 1:            now.Add(7*time.Second + 1),
		7 * time.Second:              fresh,
		0:                            fresh,
		-time.Second:                 fresh,
		-(time.Duration(1000) * 1e9): fresh,
	} {
		if got := within(patience, now, now.Add(left)); !got.Equal(want) {
			t.Errorf("%v left: got %v, want %v", left, got, want)
		}
	}
	if got := within(patience, now, time.Time{}); !got.Equal(fresh) {
		t.Errorf("none in force: got %v, want %v", got, fresh)
	}
}

// counting counts how often deadlines are set.
type counting struct {
	net.Conn
	reads, writes int
}

func (c *counting) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *counting) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

func TestBusyConnectionSetsFewDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(newFake(), testConfig())
		here, there := net.Pipe()
		counted := &counting{Conn: there}
		go s.ServeConn(counted)
		c := newClient(t, here).patient()
		for range 1000 {
			c.send("PING").want("+PONG\r\n")
		}
		c.Close()
		synctest.Wait()
		if counted.reads > 5 || counted.writes > 1 {
			t.Errorf("%d read and %d write deadlines were set for 1000 commands, want a few", counted.reads, counted.writes)
		}
	})
}

func TestWriteToABusyClientMustEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 8 * time.Second
		s := New(newFake(), testConfig(func(c *Config) { c.WriteTimeout = patience }))
		here, there := net.Pipe()
		ended := make(chan struct{})
		go func() {
			s.ServeConn(there)
			close(ended)
		}()
		c := newClient(t, here).patient()
		for range 100 {
			c.send("PING").want("+PONG\r\n")
			time.Sleep(patience / 20)
		}
		c.send("PING")
		began := time.Now()
		<-ended
		if took := time.Since(began); took > patience || took < patience-patience/8 {
			t.Errorf("cut after %v, want at most %v and an eighth less at least", took, patience)
		}
	})
}
