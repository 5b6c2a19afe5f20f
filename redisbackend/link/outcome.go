package link

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/semserver/semserver/semaphore"
)

// ErrUnknown says that a call may have been executed, or may yet be until the time that it carries has
// passed.
var ErrUnknown = errors.New("the outcome is not known")

// ErrUnreplicated comes with a reply: the call was executed, but too few replicas have acknowledged that
// in time.
var ErrUnreplicated = errors.New("too few replicas have acknowledged")

// away are the first words of replies by servers that take no calls at the moment. Nothing was
// executed: those that are about writes are given to the first that a script tries, too.
const away = " LOADING READONLY TRYAGAIN CLUSTERDOWN MASTERDOWN NOREPLICAS MOVED ASK NOSCRIPT "

// inScript marks an error that was raised while a script ran.
const inScript = " script: "

// down is the answer to a call that certainly was not executed, and may be sent again.
func down(why error) *semaphore.Error {
	return semaphore.Errorf(semaphore.CodeDown, "Redis takes no calls at the moment; the request was not applied: %s", oneLine(why))
}

// refused is the answer to a call that Redis has refused, or would refuse.
func refused(words string) *semaphore.Error {
	return semaphore.Errorf(semaphore.CodeBackend, "Redis refused; nothing was done: %s", words)
}

// beforehand is the answer to calls that were not sent because of this error.
func beforehand(err error) *semaphore.Error {
	var reply redis.Error
	var misfit *misfit
	switch {
	case errors.As(err, &misfit):
		return refused(oneLine(err))
	case errors.As(err, &reply) && !isAway(reply.Error()):
		return refused(oneLine(reply))
	}
	return down(err)
}

// lasts says whether what keeps us from using a Redis is there until somebody changes its configuration or
// ours.
func lasts(err error) bool {
	var misfit *misfit
	var reply redis.Error
	if errors.As(err, &misfit) {
		return true
	}
	return errors.As(err, &reply) && !isAway(reply.Error()) && firstWord(reply.Error()) != "BUSY"
}

// verdict is the answer to a call that Redis has answered by an error.
func verdict(reply error) error {
	text := reply.Error()
	switch word := firstWord(text); {
	case word == "WRONGTYPE":
		return semaphore.Errorf(semaphore.CodeWrongType, "a key of this semaphore holds something else; nothing was done")
	case isAway(text):
		return down(reply)
	case word == "MISCONF":
	case strings.Contains(text, inScript):
		// What a script has written before it breaks stays.
		return fmt.Errorf("%w: a script broke: %s", ErrUnknown, text)
	}
	return refused(text)
}

func isAway(text string) bool {
	return strings.Contains(away, " "+firstWord(text)+" ") || strings.HasPrefix(text, "ERR max number of clients")
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// redirection reads "MOVED 3999 host:port" and "ASK …"; a reply without a host means the one that
// answered.
func redirection(text, from string) (addr string, ask, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 || parts[0] != "MOVED" && parts[0] != "ASK" {
		return "", false, false
	}
	addr = parts[2]
	if strings.HasPrefix(addr, ":") {
		addr = hostOf(from) + addr
	}
	return addr, parts[0] == "ASK", true
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// unknown is the answer to a call whose reply did not come.
func unknown(why error) error { return fmt.Errorf("%w: %s", ErrUnknown, oneLine(why)) }
