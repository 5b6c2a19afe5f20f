// Package peer connects the nodes of a cluster: one port, authenticated connections, each for one
// purpose.
//
// The life of a connection, from both ends:
//
//	dial.go                                accept.go
//	Dial: a place, the name resolved,      accept: a place among the handshakes
//	the socket connected                   (or closed at once)
//	TLS, unless peers are plain      <->   TLS, unless peers are plain       (secret.go, certificate.go)
//	hello: purpose, who is there      ->   known purpose, Host.Admit, a place among the peers
//	welcome, or why not              <-    who answers, or why not           (greeting.go)
//	the caller's                           the handler's: Raft's own traffic, forwarded
//	                                       requests, or a question and its answer (ask.go)
//
// A handshake has 5 s from its first byte to its last, however slowly they drip. What fails in it is said
// in an operator's words (explain.go), to the other end as far as that can be told, and to the log, though
// not once per attempt (complaints.go). Every socket notices within 20 s that the machine at its other
// end is gone (socket.go). Close closes the sockets beneath TLS, so nobody waits for a farewell from a
// stuck peer; what travels over them is therefore framed, and its end never told by the end of a stream.
//
// # Who is trusted
//
// Raft assumes that nodes fail by stopping and not by lying, and so does everything above this package.
// Whoever gets past the greeting is a node of the cluster: it can claim any term and depose any leader,
// write any entry, send a snapshot that fills the disk, send a configuration that does not decode, which
// stops the process, and make Raft's decoder allocate: a frame of 30 bytes up to 4 GiB (reserved, not
// written), a MiB of empty entries 160 MiB. A limit on the size of frames would change none of this. What
// protects a cluster is that strangers do not get past the greeting. Security says how; all three kinds
// speak to their own kind only.
//
// Mutual TLS (certificate.go): TLS 1.3; both ends verify the other's certificate against the CA, and who
// dials, that it is for the host it meant. Every certificate of that CA for both usages (server and
// client authentication) is a node: use a CA for this cluster alone. Certificates are not looked up in
// revocation lists; let them be short-lived. Certificate, key and CA are read again within 5 s of a change,
// for handshakes from then on; a CA file with the old and the new CA leads from one to the other.
//
// A cluster secret (secret.go): from the secret both ends derive the same Ed25519 key, and accept exactly
// that key under TLS 1.3. So the secret itself never travels, in no form; connections are encrypted and
// cannot be altered, recordings cannot be read later by whoever learns the secret, and an answer cannot be
// replayed or mirrored, since TLS has both ends sign the handshake, each in its role. It tells nodes from
// strangers, but not one node from another: who knows the secret is every node. And whoever can connect
// sees the public key, and can try secrets against it as fast as his machines go. That is why it must be
// long, and should be made by a machine: 32 random characters cannot be tried. To change it all nodes are
// restarted with the new one.
//
// Plain: anybody who can connect is a node. Hence only on loopback, where that is everybody on the
// machine, unless it is allowed by name.
//
// # What a stranger costs
//
// At most MaxHandshakes goroutines at once (64; one address, or one /64 of IPv6, may have a quarter), for
// 6 s each. For each at most what TLS may buffer of a handshake (64 KiB a message, 256 KiB of
// certificates), or 4 KiB of a greeting where peers are plain. The connections of peers are counted
// apart from these, so strangers do not use up MaxConns (256). A line in the log for an address and kind of
// trouble every 10 s, for 1,024 of them.
//
// To add a purpose, edit greeting.go, and give Network.Serve a handler for it. To add a kind of security,
// edit security.go: it needs credentials.
package peer
