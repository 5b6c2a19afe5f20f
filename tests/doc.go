// Package tests looks at semserver from outside: the real binary, over the wire, as its clients and
// its operators see it. Nothing here knows how the server is built.
//
// transcript/*.txt is the contract, command by command, as conversations (transcript_test.go says how
// to read and write them). The other tests are about what a conversation cannot show: kill -9 at any
// moment (crash), many clients doing anything (load), clients that mean harm (wire), hang-ups
// (hangup), stopping (stop), limits that flags set (flags), the clients that people really use
// (clients), and the script that the README shows (guard). With -race the binary is built with the
// race detector too, and a race that it reports fails the test that started it.
//
// redismode has semservers in front of a Redis that misbehaves or has other clients. bench holds the
// measurements behind "make bench".
package tests
