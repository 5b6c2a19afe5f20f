package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semserver/semserver/redisbackend"
	"github.com/semserver/semserver/redisbackend/link"
	"github.com/semserver/semserver/semaphore"
	"github.com/semserver/semserver/tests/redisd"
)

func TestFlagsOfAnotherModeAreRefusedByName(t *testing.T) {
	const url = "redis://127.0.0.1"
	for _, c := range []struct {
		env  map[string]string
		args string
		want string // empty: accepted
	}{
		{nil, "--redis=" + url, ""},
		{nil, "--redis=" + url + " --hold=1s --shutdown-timeout=1s --max-waiters=5", ""},
		{nil, "--redis=" + url + " --data-dir=d", "--data-dir is for a node that keeps semaphores itself"},
		{nil, "--redis=" + url + " --data-dir=semserver-data", "--data-dir is for a node"}, // though it is the default
		{nil, "--redis=" + url + " --join=a:1", "--join is for a node"},
		{nil, "--redis=" + url + " --cluster-commands=yes", "--cluster-commands is for a node"},
		{nil, "--redis=" + url + " --restore=f", "--restore is for a node"},
		{nil, "--redis=" + url + " --waiter-grace=1s", "--waiter-grace is for a node"},
		{map[string]string{"SEMSERVER_REDIS": url, "SEMSERVER_BOOTSTRAP_EXPECT": "3"}, "", "--bootstrap-expect is for a node"},
		{map[string]string{"SEMSERVER_DATA_DIR": "/data"}, "--redis=" + url, ""}, // as images of containers set it
		{map[string]string{"SEMSERVER_DATA_DIR": "/data"}, "--redis=" + url + " --data-dir=d", "--data-dir is for a node"},
		{nil, "--redis-prefix=x:", "--redis-prefix is for a server whose semaphores are in a Redis"},
		{nil, "--reconcile-grace=5s", "--reconcile-grace is for a server whose semaphores are in a Redis"},
		{map[string]string{"SEMSERVER_REDIS": ""}, "", "--redis is empty"},
	} {
		_, err := parse(strings.Fields(c.args), environment(c.env))

		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v %s: got %v, want %q", c.env, c.args, err, c.want)
		}
	}
}

func TestBadSettingsOfRedisAreRefusedByName(t *testing.T) {
	empty := file(t, "empty", "\n")
	for args, want := range map[string]string{
		"--redis=localhost:6379":                                        "--redis: unknown scheme",
		"--redis=redis://u:secret@h:x":                                  "--redis: \"h:x\"",
		"--redis=redis-sentinel://a":                                    "--redis: the name that the Sentinels know is missing",
		"--redis=redis://h --redis-ca=ca":                               "--redis: files for TLS",
		"--redis=rediss://h --redis-ca=/nowhere":                        "--redis: TLS: read authorities",
		"--redis=rediss://h --redis-cert=c":                             "--redis: a certificate and its key",
		"--redis=redis://u:p@h --redis-username=v":                      "--redis: a user is given twice",
		"--redis=redis://:p@h --redis-password-file=f":                  "--redis: a password is given twice",
		"--redis=redis://h --redis-password-file=" + empty:              "--redis: read password: the first line of",
		"--redis=redis://h --redis-sentinel-username=s":                 "--redis: a login for Sentinels",
		"--redis=redis://h --redis-timeout=1ms":                         "--redis-timeout: 1ms is not within",
		"--redis=redis://h --redis-wait-replicas=-1":                    "--redis-wait-replicas: -1 is not within",
		"--redis=redis://h --redis-wait-timeout=1h":                     "--redis-wait-timeout: 1h",
		"--redis=redis://h --reconcile-every=0s":                        "--reconcile-every: 0s",
		"--redis=redis://h --reconcile-grace=0s":                        "--reconcile-grace: 0s",
		"--redis=redis://h --redis-hash-tag=sometimes":                  "--redis-hash-tag",
		"--redis=redis-cluster://h --redis-hash-tag=never":              "--redis-prefix, --redis-hash-tag: on a Redis Cluster",
		"--redis=redis://h --redis-prefix=" + strings.Repeat("x", 1025): "--redis-prefix is longer",
	} {
		_, err := parse(strings.Fields(args), environment(nil))

		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want no password", args, err)
		}
	}
}

func TestEverySettingOfRedisReachesTheEngine(t *testing.T) {
	password := file(t, "p", "secret\n")
	c := mustParse(t, nil, "--config", file(t, "c.yaml", `
redis: redis-sentinel://a,b:2/main?db=3
redis-prefix: "x:"
redis-hash-tag: always
redis-username: u
redis-password-file: `+password+`
redis-sentinel-username: s
redis-sentinel-password-file: `+password+`
redis-timeout: 1s
redis-wait-replicas: 2
redis-wait-timeout: 2s
reconcile-every: 3s
reconcile-grace: 4s
hold: 6s
max-waiters: 7
`))
	got, err := c.redisConfig(nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	o := link.DefaultOptions(link.Target{Mode: link.Sentinel, Addrs: []string{"a:26379", "b:2"}, Master: "main", DB: 3, Username: "u"})
	o.PasswordFile, o.SentinelUsername, o.SentinelPasswordFile = password, "s", password
	o.Timeout, o.Replicas, o.ReplicaTimeout = time.Second, 2, 2*time.Second
	o.Logger, got.Link.Logger = nil, nil
	limits := semaphore.DefaultLimits()
	limits.MaxWaiters = 7
	diff(t, "engine", got, redisbackend.Config{
		Link: o, Prefix: "x:", HashTag: "always", Limits: limits,
		Hold: 6 * time.Second, ReconcileEvery: 3 * time.Second, ReconcileGrace: 4 * time.Second,
	})
	if got := c.redisAddress(); got != "redis-sentinel://a:26379,b:2/main?db=3" {
		t.Errorf("address: got %s", got)
	}
	d := mustParse(t, nil, "--redis=rediss://h", "--redis-server-name=n")
	if got, err := d.redisConfig(nil, nil); err != nil || got.Link.ServerName != "n" || !got.Link.Target.TLS {
		t.Errorf("TLS: got %+v, %v", got.Link, err)
	}
}

func TestTheDefaultsOfRedisAreThoseOfTheEngine(t *testing.T) {
	got, err := mustParse(t, nil, "--redis=redis://h").redisConfig(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := redisbackend.DefaultConfig(got.Link.Target)
	want.Link.Logger, got.Link.Logger = nil, nil
	diff(t, "engine", got, want)
}

func TestARedisThatCannotBeUsedStopsTheStart(t *testing.T) {
	r := redisd.Run(t, "--requirepass", "secret")
	_, err := open(mustParse(t, nil, "--redis=redis://:wrong-one@"+r.Addr, "--listen=127.0.0.1:0", "--http="), slog.New(slog.DiscardHandler))

	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("got %v, want what Redis says, without the password", err)
	}
}

func TestAServerThatFindsNoRedisIsNotReadyAndWaitsForIt(t *testing.T) {
	r := redisd.Run(t)
	r.Kill()
	a, err := open(mustParse(t, nil, "--redis=redis://"+r.Addr, "--listen=127.0.0.1:0", "--http="), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.engine.Ready(); err == nil {
		t.Error("without Redis: got ready, want not")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	if err := r.Start(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(patience); a.engine.Ready() != nil && time.Now().Before(end); {
		<-time.After(readyEvery)
	}
	if err := a.engine.Ready(); err != nil {
		t.Errorf("with Redis: got %v, want ready", err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stop: got %v, want nil", err)
	}
}
