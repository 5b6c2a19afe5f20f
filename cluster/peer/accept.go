package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// Accept pauses between these bounds when it fails, so that a process out of file descriptors
	// does not spin.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

func (n *Network) accept() {
	pause := minAcceptPause
	for {
		socket, err := n.listener.Accept()
		if err == nil {
			pause = minAcceptPause
			n.greet(socket)
			continue
		}
		if n.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		n.complain("accept failed", n.listener.Addr().String(), err)
		select {
		case <-time.After(pause):
		case <-n.ctx.Done():
			return
		}
		pause = min(2*pause, maxAcceptPause)
	}
}

// greet begins the handshake of an accepted connection, if there is room for one more.
func (n *Network) greet(socket net.Conn) {
	c, err := n.enter(socket)
	if err != nil {
		socket.Close()
		n.turnedAway(socket, err)
		return
	}
	tune(socket)
	n.work.Go(func() { n.receive(c) })
}

func (n *Network) receive(c *connection) {
	c.SetDeadline(time.Now().Add(n.patience))
	handle, who, err := n.welcome(c)
	if err != nil {
		n.turnedAway(c.socket, err)
		c.dismiss()
		return
	}
	c.SetDeadline(time.Time{})
	handle(c, who)
}

// welcome goes through the handshake as the end that was dialed.
func (n *Network) welcome(c *connection) (func(net.Conn, Greeting), Greeting, error) {
	if n.secure != nil {
		if err := n.acceptTLS(c); err != nil {
			return nil, Greeting{}, err
		}
	}
	purpose, who, err := readHello(c)
	switch {
	case err == nil:
		err = n.judge(c, purpose, who)
	case quiet(err):
		return nil, Greeting{}, err
	default:
		err = explain(err, n.secure)
	}
	if err != nil {
		_ = writeRefusal(c, err.Error()) // it is closed either way
		return nil, Greeting{}, err
	}
	return n.host.Handle[purpose], who, writeWelcome(c, n.host.Introduce())
}

// judge says why a peer that has introduced itself is not welcome.
func (n *Network) judge(c *connection, p Purpose, who Greeting) error {
	if n.host.Handle[p] == nil {
		return fmt.Errorf("unknown purpose %q", p)
	}
	if err := n.host.Admit(p, who); err != nil {
		return err
	}
	return n.settle(c)
}

func (n *Network) acceptTLS(c *connection) error {
	over := tls.Server(c.socket, n.secure.accepting())
	err := over.HandshakeContext(n.ctx)
	if err == nil {
		c.Conn = over
		return nil
	}
	err = explain(err, n.secure)
	if errors.Is(err, errPlain) {
		_ = writeRefusal(c.socket, "peers of this node speak TLS")
	}
	return err
}

// turnedAway logs why a connection was not accepted, if somebody could do something about it.
func (n *Network) turnedAway(socket net.Conn, why error) {
	if n.ctx.Err() != nil || quiet(why) {
		return
	}
	n.complain("peer turned away", addressOf(socket.RemoteAddr()).String(), why)
}
