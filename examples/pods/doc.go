// Command pods tells the story of 121 pods that start at once.
//
//	semserver &
//	go run ./examples/pods
//
// Each pod loads its cache from one database, which is a stand-in: it breaks down when more than 8 load
// at a time. In the first act they just do it. In the second each starts its load by semctl run. In the
// third, a third of them is killed while they load, and is started again: their places come back when
// their leases end.
//
//	main.go      the acts
//	act.go       121 processes, from the start to the end of the last
//	database.go  the stand-in
//	pod.go       what runs in each process
//
// The exit status is 1 when the story does not go as it should.
//
// To add an act, edit main.go.
package main
