// Package server speaks the Redis protocol to clients, in front of a [semaphore.Backend]. It decides
// nothing about semaphores. Its trade is the wire: hostile bytes, clients that hang up, do not read,
// or send too much; what each client library expects; and that every request gets one answer.
//
// # The way of a request
//
// Each connection has one goroutine ([Server.ServeConn]). It reads what is there, and the reader cuts
// it into commands (reader.go), within limits that are checked before memory is spent. The command
// table (command.go) says what each one is: the commands on semaphores have a parser that turns the
// arguments into a request (parse.go), all others answer by themselves. Requests that are already
// there are passed to the backend together, as one run; the replies are encoded in one place
// (reply.go), into an output buffer (output.go), and written when no command is left. So a pipeline
// of sixteen commands costs one system call each way and one call of the backend.
//
// A run ends behind an Acquire that may have to wait and behind a listing, whose reply may be large,
// before any command that is not a request, and at semaphore.MaxRun requests. Nothing behind a waiting command is started before that one is answered: replies
// come in the order of the commands.
//
// # Waiting and hanging up
//
// Who stands in line must not be granted anything once it has gone. While an Acquire waits, a second
// goroutine reads ahead (wait.go), for this is how a closed connection is noticed; when it is, the
// request leaves the line. That alone leaves a gap between the grant and the moment the client is
// told. So before grants are written, the socket is asked for a hang-up once more (socket.go), and
// the output remembers where each grant begins: one of which no byte has been written was never
// told, and is given back. A client that has closed only its sending half is answered null instead.
//
// # Several nodes
//
// Every node takes every command, and no client is ever redirected. What SEM.NODE shows and does comes
// from the engine by two interfaces (members.go). CLUSTER shows the same nodes as a Redis Cluster of
// one shard (shard.go), so that cluster-aware clients go straight to the leader; it is refused unless
// asked for, because some clients change their ways as soon as it is answered.
//
// # Memory
//
// Buffers are borrowed: a connection that is silent or stands in line has none. What one large
// command needed is not kept.
//
// # To add a command
//
// Edit the command's group (semcommands.go, connection.go, …): its name, usage line, summary and
// flags; arity, COMMAND DOCS and SEM.HELP follow from them. For a request on semaphores add a parser
// to parse.go and, if it answers with a new type, its encoding to reply.go. Then add it to the
// transcript in the tests.
package server
