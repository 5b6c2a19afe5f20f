// Package redismode looks at Redis mode from outside: real semservers, real Redis processes, clients of
// both. Nothing here knows how either is built; what is expected is what docs/redis.md says.
//
// story_test.go tells what happens to three permits in a cluster of pods, with its times: first with the
// recipe that people use by hand, then with us on the same keys, at last what no recipe can do, which is
// to refuse a holder that has come back from the dead (resource_test.go). several_test.go has more than one
// server in front of a Redis, beside_test.go clients by hand in the same rush, crowd_test.go ten thousand
// who wait. outage_test.go, restarts_test.go, cuts_test.go and refusal_test.go take the Redis away, cut it off, or
// have it refuse, in the ways that docs/redis.md lists.
//
// Most tests judge by what clients were told and by the two public keys, the List of free permits and the
// ZSET of holders. Times are printed; they fail a test only where they are promised, and then the best of
// several counts, so that a busy machine fails nothing.
//
// To add a fault of Redis, add a test to outage_test.go or refusal_test.go, and its line to docs/redis.md.
package redismode
