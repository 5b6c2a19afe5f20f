// Package client tests the Go client against real servers, with a network between them that breaks.
//
// To add a test, add a file for a new kind of fault, or a function to the file of its kind; harness_test.go
// has what they share.
package client
