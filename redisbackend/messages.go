package redisbackend

import (
	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/redisbackend/script"
)

// hear takes in what is published about semaphores: whoever waits for one looks at it.
func (e *Engine) hear(m link.Message) {
	if m.Gap {
		e.core.wakeAll() // there may have been messages meanwhile
		return
	}
	news, err := script.ParseMessage(m.Payload)
	if err != nil {
		e.cfg.Logger.Debug("a message on our channel is none of ours", "error", err)
		return
	}
	e.core.office.saw(news.Token)
	me := e.core.office.incarnation
	if news.From == me || news.To != 0 && news.To != me {
		return
	}
	e.core.wake(news.Key)
}
