// Command semserver runs one node: a counting semaphore server that speaks the Redis protocol.
//
// This package builds and wires the others, and nothing else. Everything that could be configured is
// in one checked value (config), so that tests open the same node that main opens.
//
//	main.go     the process: signals and exit status
//	run.go      the program without its process
//	flags.go    what can be configured
//	parse.go    the command line, the environment (env.go), the file (file.go), and their order
//	check.go    what is refused, before anything is touched (rules.go: of --default-capacity,
//	            peercheck.go and peersecurity.go: of what is said about other nodes)
//	peers.go    what a node is told of other nodes, and they of it
//	listen.go   sockets
//	engine.go   configuration of the other packages, and what they need of each other
//	members.go  the nodes, as the engine knows them and clients see them
//	redis.go    the Redis that keeps semaphores in place of a node, and mode.go: which of both it is
//	app.go      opening, running and closing a node
//
// A node is opened from the outside in: sockets first, because a taken port should cost nothing; then
// probes, because opening a large data directory takes time; then the engine; then its clients. It
// is closed the other way round (see app.close).
//
// To add a flag, edit flags.go (the field), parse.go (its default, from the package that owns it),
// check.go (its bounds), engine.go (where it goes), and the table in README.md.
package main
