// Package redisd runs redis-server for tests: one server, three Sentinels that watch a master and two
// replicas, or a Redis Cluster of six. They are real processes, so that a test can kill one, stop it
// for a while, bring it back with its data or without, and see what its clients make of it.
//
// Servers never share a port. Every test process has a loopback address of its own, made of its
// process id, and counts the ports there; so tests of different packages may run at the same time, and
// a server that was killed comes back on the port it had. Each server lives in a folder of its own and
// dies with the test process, however that ends.
//
//	redis := redisd.Run(t, "--maxmemory", "10mb")      // one server, for the length of the test
//	redis.Kill()                                       // as kill -9
//	redis.Restart(); redis.RestartEmpty()              // with its data on disk, or without
//	redis.Pause(); redis.Resume()                      // alive, but silent
//	sentinels := redisd.RunSentinels(t)                // Master names it, Addrs are the Sentinels
//	cluster := redisd.RunCluster(t)                    // three masters, each with a replica
//
// A server keeps nothing on disk unless it is started with [Durable].
//
// To add a kind of fault, add a method to Server; to add a kind of deployment, add a file beside
// cluster.go that starts servers and waits until they work together.
package redisd
