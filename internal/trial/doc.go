// Package trial is what the tests of several packages share: waiting for a condition, a log that is read
// while it is written, a server that answers as a script says, and numbers from the environment.
//
// A test that sleeps is either slow or wrong: it sleeps for too long on a fast machine, and for too
// short a time on a slow one. So a test waits in one of three ways. What happens in the same process
// and depends on time runs in a bubble of testing/synctest, where sleeping is exact and costs nothing.
// What somebody tells is received from a channel. What can only be looked at is looked at again and
// again, by [Await]. Nothing else pauses, but for a test that says in the name of what it calls why real
// time has to pass.
//
// Nothing of this is part of a program: only tests import it.
//
// To add a helper, make sure that the tests of two packages need it, and give it a file of its own.
package trial
