package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"
)

// certificate makes a certificate that signs itself, and returns the paths of it and of its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

const secret32 = "0123456789abcdef0123456789abcdef"

func TestNodesBeyondLoopbackMustKnowEachOther(t *testing.T) {
	cert, key := certificate(t)
	secret := file(t, "secret", secret32+"\n")
	for _, addresses := range []string{
		"--peer-listen=10.0.0.1:7361",
		"--peer-listen=node:7361",
		"--peer-listen=:7361 --peer-advertise=localhost:7361",
		"--peer-listen=[2001:db8::1]:7361",
		"--peer-listen=127.0.0.1:7361 --peer-advertise=node:7361",
		"--join=node:7361 --peer-advertise=10.0.0.1:7361",
	} {
		_, err := parse(strings.Fields(addresses), environment(nil))
		for _, way := range []string{"--cluster-secret-file", "--peer-cert", "--plain-peers"} {
			if err == nil || !strings.Contains(err.Error(), way) || !strings.Contains(err.Error(), "is beyond loopback") {
				t.Errorf("%s: got %v, want an error that names %s", addresses, err, way)
			}
		}
		for _, way := range []string{
			"--plain-peers", "--cluster-secret-file=" + secret, "--peer-cert=" + cert + " --peer-key=" + key + " --peer-ca=" + cert,
		} {
			mustParse(t, nil, strings.Fields(addresses+" "+way)...)
		}
	}
	for _, addresses := range []string{"--join=node:7361", "--peer-listen=localhost:1", "--peer-listen=[::1]:1", "--peer-listen=127.1.2.3:1"} {
		mustParse(t, nil, addresses)
	}
}

func TestBadSecurityIsRefusedByName(t *testing.T) {
	cert, key := certificate(t)
	_, other := certificate(t)
	secret, text := file(t, "secret", secret32), file(t, "text", "no certificate")
	files := "--peer-cert=" + cert + " --peer-key=" + key + " --peer-ca=" + cert
	for _, c := range []struct{ args, want string }{
		{"--plain-peers --cluster-secret-file=" + secret, "exclude each other"},
		{files + " --cluster-secret-file=" + secret, "exclude each other"},
		{"--plain-peers --peer-ca=" + cert, "exclude each other"},
		{"--peer-key=" + key + " --peer-ca=" + cert, "--peer-cert is missing"},
		{"--peer-cert=" + cert + " --peer-ca=" + cert, "--peer-key is missing"},
		{"--peer-cert=" + cert + " --peer-key=" + key, "--peer-ca is missing"},
		{"--peer-cert=/nowhere --peer-key=" + key + " --peer-ca=" + cert, "--peer-cert: open /nowhere"},
		{"--peer-cert=" + cert + " --peer-key=" + t.TempDir() + " --peer-ca=" + cert, "is not a file"},
		{"--peer-cert=" + cert + " --peer-key=" + other + " --peer-ca=" + cert, "--peer-key " + other},
		{"--peer-cert=" + text + " --peer-key=" + key + " --peer-ca=" + cert, "--peer-cert " + text},
		{"--peer-cert=" + cert + " --peer-key=" + key + " --peer-ca=" + text, "--peer-ca: " + text + " holds no certificate"},
		{"--cluster-secret-file=/nowhere", "--cluster-secret-file: open /nowhere"},
		{"--cluster-secret-file=" + file(t, "none", "\n"+secret32), "the first line is empty"},
		{"--cluster-secret-file=" + file(t, "short", secret32[1:]+"\n"+secret32), "the first line has 31 characters; 32 are needed"},
		{"--cluster-secret-file=" + file(t, "short", strings.Repeat("ä", 31)), "the first line has 31 characters"},
		{"--cluster-secret-file=" + file(t, "long", strings.Repeat("x", maxSecret+1)), "longer than 4096 bytes"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.args), func(t *testing.T) {
			_, err := parse(strings.Fields(c.args), environment(nil))

			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSecretIsTheFirstLineOfItsFile(t *testing.T) {
	path := file(t, "secret", secret32+"\nnot this\n")

	if got := mustParse(t, nil, "--cluster-secret-file", path).secret; string(got) != secret32 {
		t.Errorf("got %q, want %q", got, secret32)
	}
	if got := mustParse(t, nil).secret; got != nil {
		t.Errorf("without a file: got %q, want none", got)
	}
}

func TestSurprisesAmongNodesAreWarnedOf(t *testing.T) {
	private, exposed := file(t, "private", secret32), file(t, "exposed", secret32)
	if err := os.Chmod(exposed, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string // in the log; empty: no warning
	}{
		{"--bootstrap-expect=3 --join=n1:1 --cluster-secret-file=" + private, ""},
		{"--bootstrap-expect=4 --join=n1:1", "bootstrap_expect=4"},
		{"--peer-listen=127.0.0.1:1 --cluster-secret-file=" + exposed, exposed},
		{"--peer-listen=127.0.0.1:1 --plain-peers", "--plain-peers"},
	} {
		var log bytes.Buffer
		a := &app{cfg: mustParse(t, nil, strings.Fields(c.args+" --max-clients=1")...)}
		a.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))

		a.warn()

		if got := log.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: got %q, want a warning with %q", c.args, got, c.want)
		}
	}
}
