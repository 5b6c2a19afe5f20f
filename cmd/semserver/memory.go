package main

import "runtime/debug"

// gcPercent trades memory for speed: the heap may grow to five times what is live before it is
// collected. Most of what is live are grants, which every collection has to walk through.
const gcPercent = 400

// tuneCollector sets the garbage collector, unless the environment does.
func tuneCollector(env environment) {
	if _, set := env["GOGC"]; !set {
		debug.SetGCPercent(gcPercent)
	}
}
