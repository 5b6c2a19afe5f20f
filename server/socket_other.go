//go:build !linux

package server

// pollState would be what one look at a socket needs; here there is no way to look past unread bytes.
type pollState struct {
	hung bool
}

func (p *pollState) look(uintptr) {}

func setUserTimeout(uintptr) {}
