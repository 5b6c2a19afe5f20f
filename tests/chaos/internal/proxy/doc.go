// Package proxy stands between the nodes of a cluster and makes their network fail on demand.
//
// Node i listens for its peers on an address of its own, 127.0.1.i, and dials from there. What it
// tells the others to dial is 127.0.2.i, where the proxy listens. So the proxy knows of every
// connection who dialled it and who was meant, and every byte belongs to a [Link]. A [Rule] says what
// becomes of the bytes of a link: they pass, they are held, they pass late, or slowly; or the link
// refuses connections.
//
//	node 1, 127.0.1.1  --dials-->  127.0.2.2, proxy  --dials-->  127.0.1.2, node 2
//
// To hold is what a router does that has lost a cable: nobody is told, and what was sent arrives once
// the cable is back. To cut is what a firewall does that sends resets.
//
// To add a kind of fault, add a field to Rule and heed it in stream.go; to add a shape of partition,
// add a function to links.go.
package proxy
