package server

import "github.com/semserver/semserver/semaphore"

// Codes that only the protocol knows, as in Redis.
const (
	codeNoAuth    semaphore.Code = "NOAUTH"
	codeWrongPass semaphore.Code = "WRONGPASS"
	codeNoProto   semaphore.Code = "NOPROTO"
	codeDenied    semaphore.Code = "DENIED"
	codeExecAbort semaphore.Code = "EXECABORT"
)

// Refusals in Redis's words, which clients look for.
var (
	errNoAuth      = &semaphore.Error{Code: codeNoAuth, Message: "Authentication required."}
	errHelloNoAuth = &semaphore.Error{Code: codeNoAuth, Message: "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"}
	errWrongPass   = &semaphore.Error{Code: codeWrongPass, Message: "invalid username-password pair or user is disabled."}
	errNoPassword  = refusal("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	errNoProto     = &semaphore.Error{Code: codeNoProto, Message: "unsupported protocol version"}
	errProtected   = &semaphore.Error{Code: codeDenied, Message: "semserver is running in protected mode: no password is set, so only clients on this machine are served. Set one with --password-file, or start it with --protected-mode no if everybody who can reach it may use it."}
	errMaxClients  = refusal("max number of clients reached")
	errSyntax      = refusal("syntax error")
	errNoCluster   = refusal("This instance has cluster support disabled")
	errNoMembers   = refusal("this node has no peers")
	errDBRange     = refusal("DB index is out of range")
)

func refusal(message string) *semaphore.Error {
	return &semaphore.Error{Code: semaphore.CodeInvalid, Message: message}
}

// errConfined refuses a command on a RESP2 connection that has subscribed: its replies could not be
// told from messages.
func errConfined(name string) *semaphore.Error {
	return semaphore.Errorf(semaphore.CodeInvalid,
		"Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", name)
}
