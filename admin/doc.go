// Package admin is the operators' side of a node, over HTTP:
//
//	/metrics  what it counts, in Prometheus's text format
//	/livez    200 as long as the process answers at all: restart it when it does not
//	/readyz   200 while the engine can decide requests, else 503 and the reason: send it no clients
//
// The package knows neither the engine nor the Redis protocol. It asks the engine one question, the
// [Engine] interface, and is given a registry that others fill ([NewRegistry] makes one with the
// figures of the Go runtime and of the process).
//
// The order of a graceful stop begins and ends here: [Server.Leave] first, so that load balancers
// turn away while clients are still served, [Server.Shutdown] last, so that the stop can be watched.
//
// To add a page, edit routes in admin.go.
package admin
