package redisd

import (
	"fmt"
	"os"
	"sync/atomic"
)

const (
	// firstPort and ports keep below the ports that systems give to whoever dials, also with the second
	// port, 10,000 above, that a cluster node listens on.
	firstPort = 10_000
	ports     = 10_000
)

// given counts the ports that this process has given out.
var given atomic.Int64

// IP is the loopback address of this test process, which no other process has at the same time.
func IP() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 100+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
}

// FreeAddr is an address at which nobody listens: this process does not give it out again.
func FreeAddr() string {
	return fmt.Sprintf("%s:%d", IP(), firstPort+(given.Add(1)-1)%ports)
}
