package main

import (
	"cmp"
	"net"
	"strings"

	"github.com/semserver/semserver/cluster"
	"github.com/semserver/semserver/cluster/peer"
)

// defaultPeerListen is where a node that is part of a cluster listens for the others.
const defaultPeerListen = "127.0.0.1:7361"

// clustered says whether the flags make the node part of a cluster of several.
func (f peerFlags) clustered() bool {
	return f.PeerListen != "" || len(f.Join) > 0 || f.BootstrapExpect > 0
}

// listen is where the node listens for others; empty: nowhere.
func (f peerFlags) listen() string {
	if !f.clustered() {
		return ""
	}
	return cmp.Or(f.PeerListen, defaultPeerListen)
}

// advertise is where the others reach the node, as far as that is known before it listens.
func (f peerFlags) advertise() string { return cmp.Or(f.PeerAdvertise, f.listen()) }

// peering configures the engine for several nodes.
func (c config) peering(n *cluster.Config) {
	n.ElectionTimeout = c.Peers.ElectionTimeout
	n.NodeIDGiven = c.labelled
	n.Restore, n.RecoverSingle = c.Peers.Restore, c.Peers.RecoverSingle
	if !c.Peers.clustered() {
		return
	}
	n.PeerListen, n.PeerAdvertise = c.Peers.listen(), c.Peers.PeerAdvertise
	n.Join, n.BootstrapExpect = c.Peers.Join, c.Peers.BootstrapExpect
	n.MaxPeers = c.Peers.MaxPeers
	n.PeerSecurity = peer.Security{
		CertFile: c.Peers.PeerCert, KeyFile: c.Peers.PeerKey, CAFile: c.Peers.PeerCA,
		Secret: c.secret, Plain: c.Peers.PlainPeers,
	}
}

// clientAdvertise is where clients reach the node, which listens for them by l; nil, and empty: it does
// not. The host is empty or that of every interface where only a client can know it.
func (c config) clientAdvertise(l net.Listener) string {
	if c.Peers.ClientAdvertise != "" || l == nil {
		return c.Peers.ClientAdvertise
	}
	host, _, _ := net.SplitHostPort(c.Addresses.Listen)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if peers, _, err := net.SplitHostPort(c.Peers.advertise()); err == nil && everywhere(host) && !everywhere(peers) {
		host = peers
	}
	return net.JoinHostPort(host, port)
}

// everywhere says whether a host stands for every interface.
func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// split takes lists apart that commas separate.
func split(lists []string) []string {
	var all []string
	for _, list := range lists {
		for _, one := range strings.Split(list, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}
