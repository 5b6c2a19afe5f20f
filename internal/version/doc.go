// Package version names the build of a program: what semserver and semctl answer to --version.
//
// A release is named by the linker, as the Makefile and the Dockerfile do:
//
//	go build -ldflags "-X github.com/semserver/semserver/internal/version.release=v1.2.3" ./cmd/semctl
//
// A build that was not told, such as one by `go install`, is named by what the Go tool has written
// into it: the version of the module, or else the commit.
//
// To add a program that names its build, call [Name] in it: the linker's flag is the same for all.
package version
