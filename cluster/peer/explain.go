package peer

import "errors"

var (
	errTLS      = errors.New("peer speaks with TLS, this node without TLS")
	errProtocol = errors.New("not a peer: it speaks another protocol")
)
