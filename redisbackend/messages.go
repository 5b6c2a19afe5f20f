package redisbackend

import (
	"strconv"
	"strings"

	"github.com/semserver/semserver/redisbackend/link"
)

// hear takes in what is published about semaphores: who waits for one looks at it.
func (e *Engine) hear(m link.Message) {
	if m.Gap {
		e.core.wakeAll() // there may have been messages meanwhile
		return
	}
	kind, rest, _ := strings.Cut(m.Payload, " ")
	parts := strings.SplitN(rest, " ", 4)
	if len(parts) < 4 {
		return
	}
	to, from, token, key := parts[0], parts[1], parts[2], parts[3]
	if n, err := strconv.ParseInt(token, 10, 64); err == nil {
		e.core.office.saw(n)
	}
	me := "@" + strconv.FormatUint(e.core.office.incarnation, 36)
	if from != me && (kind != "permit" || to == me) {
		e.core.wake(key)
	}
}
