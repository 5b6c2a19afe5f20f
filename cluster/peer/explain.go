package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

var (
	errPlain    = errors.New("peer speaks without TLS, this node with TLS")
	errTLS      = errors.New("peer speaks with TLS, this node without TLS")
	errProtocol = errors.New("not a peer: it speaks another protocol")
	errSilent   = errors.New("peer closed the connection without an answer")
	errSlow     = errors.New("peer has not introduced itself in time")
)

// explain says in an operator's words what an error of the handshake means.
func explain(err error, secure credentials) error {
	var record tls.RecordHeaderError
	var alert *net.OpError
	var unverified *tls.CertificateVerificationError
	var host x509.HostnameError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:len(magic)]) == magic:
		return errPlain
	case errors.As(err, &record):
		return fmt.Errorf("%w, or is a peer without TLS", errProtocol)
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("peer does not accept our %s: %w", secure.name(), alert.Err)
	case errors.As(err, &host):
		return fmt.Errorf("peer has a certificate for another host: %w", err)
	case errors.As(err, &unverified):
		return fmt.Errorf("peer has a certificate that is not to be trusted: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: %w", errSilent, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errSlow, err)
	}
	return err
}

// quiet says whether an error is everyday: a peer that went away, or a port that was looked at.
func quiet(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled)
}
