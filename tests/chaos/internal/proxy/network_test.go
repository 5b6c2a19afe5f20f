package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// patience is how long to wait for what must come, and silence for what must not.
	patience = 10 * time.Second
	silence  = 100 * time.Millisecond
)

// network is the links of two nodes; node 2 echoes lines.
func network(t *testing.T) *Network {
	t.Helper()
	w, err := New(2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", w.Listen(2))
	if err != nil {
		t.Fatal(err)
	}
	var echoes sync.WaitGroup
	echoes.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			echoes.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		w.Close()
		l.Close()
		echoes.Wait()
	})
	return w
}

// line is a connection of node 1 to node 2.
type line struct {
	*testing.T
	*net.TCPConn
	in *bufio.Reader
}

func dial(t *testing.T, w *Network) line {
	t.Helper()
	c, err := dialFrom("127.0.1.1", w.Advertise(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return line{t, c, bufio.NewReader(c)}
}

func dialFrom(source, addr string) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (c line) say(text string) {
	c.Helper()
	if _, err := c.Write([]byte(text + "\n")); err != nil {
		c.Fatalf("write: %v", err)
	}
}

func (c line) hears(want string) {
	c.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if got, err := c.in.ReadString('\n'); err != nil || got != want+"\n" {
		c.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func (c line) hearsNothing() {
	c.Helper()
	_ = c.SetReadDeadline(time.Now().Add(silence))
	if got, err := c.in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("got %q, %v, want silence", got, err)
	}
}

func (c line) breaks() {
	c.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if got, err := c.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("got %q, %v, want a broken connection", got, err)
	}
}

// refused dials and must be turned away, at once or as soon as it is connected.
func refused(t *testing.T, source, addr string) {
	t.Helper()
	c, err := dialFrom(source, addr)
	if err != nil {
		return
	}
	defer c.Close()
	line{t, c, bufio.NewReader(c)}.breaks()
}

func TestBytesPass(t *testing.T) {
	w := network(t)
	c := dial(t, w)
	c.say("hello")
	c.hears("hello")
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: got %v, want the end to come back", err)
	}
}

func TestACutLinkRefusesAndResets(t *testing.T) {
	w := network(t)
	c := dial(t, w)
	c.say("hello")
	c.hears("hello")

	w.Set(Rule{Cut: true}, Link{1, 2})

	c.breaks()
	refused(t, "127.0.1.1", w.Advertise(2))
	w.Heal()
	again := dial(t, w)
	again.say("hello")
	again.hears("hello")
}

func TestACutLinkLeavesTheOtherDirectionAlone(t *testing.T) {
	w := network(t)
	c := dial(t, w)
	w.Set(Rule{Cut: true}, Link{2, 1})
	c.say("hello")
	c.hears("hello")
}

func TestHeldBytesArriveWhenTheLinkIsBack(t *testing.T) {
	for name, held := range map[string][]Link{
		"there": {{1, 2}}, "back": {{2, 1}}, "both": Between([]int{1}, []int{2}),
	} {
		t.Run(name, func(t *testing.T) {
			w := network(t)
			before := dial(t, w)
			before.say("hello")
			before.hears("hello")

			w.Set(Rule{Hold: true}, held...)

			before.say("again")
			before.hearsNothing()
			after := dial(t, w)
			after.say("new")
			after.hearsNothing()
			w.Heal()
			before.hears("again")
			after.hears("new")
		})
	}
}

func TestOnlyOneDirectionIsHeld(t *testing.T) {
	w := network(t)
	l, err := net.Listen("tcp", w.Listen(1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	back, err := dialFrom("127.0.1.2", w.Advertise(1))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	one := line{t, there.(*net.TCPConn), bufio.NewReader(there)}
	two := line{t, back, bufio.NewReader(back)}

	w.Set(Rule{Hold: true}, Link{1, 2})

	two.say("from 2")
	one.hears("from 2")
	one.say("from 1")
	two.hearsNothing()
	w.Heal()
	two.hears("from 1")
}

func TestTheEndOfAConnectionIsHeldToo(t *testing.T) {
	w := network(t)
	c := dial(t, w)
	c.say("hello")
	c.hears("hello")
	w.Set(Rule{Hold: true}, Link{2, 1})
	_ = c.CloseWrite() // the echo closes in turn
	c.hearsNothing()
	w.Heal()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

func TestADelayedLinkKeepsOrderAndIsNotEarly(t *testing.T) {
	w := network(t)
	c := dial(t, w)
	const delay = 50 * time.Millisecond
	w.Set(Rule{Delay: delay, Jitter: delay}, Link{2, 1})
	began := time.Now()
	for _, text := range strings.Fields("a b c d e f") {
		c.say(text)
	}
	for _, text := range strings.Fields("a b c d e f") {
		c.hears(text)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("got %v, want at least %v", took, delay)
	}
}

func TestASlowLinkTakesItsTime(t *testing.T) {
	w := network(t)
	c := dial(t, w)
	w.Set(Rule{Rate: 50_000}, Link{1, 2})
	began := time.Now()
	text := strings.Repeat("x", 10_000)
	c.say(text)
	c.hears(text)
	c.say("end")
	c.hears("end")
	if took, want := time.Since(began), 200*time.Millisecond; took < want {
		t.Errorf("10 kB at 50 kB/s: got %v, want at least %v", took, want)
	}
}

func TestANodeThatIsNotThereRefuses(t *testing.T) {
	w := network(t)
	refused(t, "127.0.1.2", w.Advertise(1))
}

func TestWhoDialsFromNowhereIsRefusedAndNoted(t *testing.T) {
	w := network(t)
	refused(t, "127.0.0.1", w.Advertise(2))
	if got, want := w.Strangers(), []string{"127.0.0.1 dialled node 2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPartitionsAreMadeOfTheRightLinks(t *testing.T) {
	for name, c := range map[string]struct{ got, want []Link }{
		"out of":  {OutOf(3, 1), []Link{{1, 2}, {1, 3}}},
		"into":    {Into(3, 1), []Link{{2, 1}, {3, 1}}},
		"apart":   {Apart(3, 2), []Link{{2, 1}, {1, 2}, {2, 3}, {3, 2}}},
		"between": {Between([]int{1, 2}, []int{3}), []Link{{1, 3}, {3, 1}, {2, 3}, {3, 2}}},
		"all":     {All(2), []Link{{1, 2}, {2, 1}}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
