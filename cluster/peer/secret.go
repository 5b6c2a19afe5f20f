package peer

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// keyPurpose keeps keys that are derived from the same secret for anything else apart from ours.
const keyPurpose = "semserver cluster/peer ed25519 v1"

var errOtherSecret = errors.New("peer does not know our cluster secret")

// sharedKey is the key that all who know the cluster secret have in common.
type sharedKey struct{ config *tls.Config }

// deriveKey makes the key and a certificate that carries it. Nothing but the key is ever looked at in
// such a certificate.
func deriveKey(secret []byte) (*sharedKey, error) {
	if err := checkSecret(secret); err != nil {
		return nil, err
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, keyPurpose, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive key from cluster secret: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "semserver"},
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate for cluster secret: %w", err)
	}
	return &sharedKey{&tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // VerifyConnection takes its place
		VerifyConnection:       func(state tls.ConnectionState) error { return sameKey(state, public) },
		SessionTicketsDisabled: true,
	}}, nil
}

// sameKey accepts exactly one key. That the other end has its private half TLS has seen to.
func sameKey(state tls.ConnectionState, public ed25519.PublicKey) error {
	if len(state.PeerCertificates) == 0 {
		return errOtherSecret
	}
	theirs, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || subtle.ConstantTimeCompare(theirs, public) != 1 {
		return errOtherSecret
	}
	return nil
}

func (k *sharedKey) accepting() *tls.Config     { return k.config }
func (k *sharedKey) dialing(string) *tls.Config { return k.config }
func (k *sharedKey) name() string               { return "cluster secret" }
