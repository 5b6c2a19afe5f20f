package client

import (
	"net"
	"time"
)

// undialled stands for a connection that could not be made, and says so when it is used: go-redis would
// write the failure to the stderr of the program, once for each attempt.
type undialled struct{ err error }

func (u undialled) Read([]byte) (int, error)       { return 0, u.err }
func (u undialled) Write([]byte) (int, error)      { return 0, u.err }
func (undialled) Close() error                     { return nil }
func (undialled) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (undialled) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (undialled) SetDeadline(time.Time) error      { return nil }
func (undialled) SetReadDeadline(time.Time) error  { return nil }
func (undialled) SetWriteDeadline(time.Time) error { return nil }
