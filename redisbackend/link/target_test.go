package link

import (
	"strings"
	"testing"

	"github.com/semserver/semserver/redisbackend/script"
)

func TestURLsNameTheirMode(t *testing.T) {
	for text, want := range map[string]Target{
		"redis://h":                              {Mode: Standalone, Addrs: []string{"h:6379"}},
		"REDIS://h:1/":                           {Mode: Standalone, Addrs: []string{"h:1"}},
		"redis://u:p%40%2f@h:1/3":                {Mode: Standalone, Addrs: []string{"h:1"}, DB: 3, Username: "u", Password: "p@/"},
		"redis://:p@h?db=2":                      {Mode: Standalone, Addrs: []string{"h:6379"}, DB: 2, Password: "p"},
		"rediss://[::1]:7":                       {Mode: Standalone, Addrs: []string{"[::1]:7"}, TLS: true},
		"rediss://[::1]":                         {Mode: Standalone, Addrs: []string{"[::1]:6379"}, TLS: true},
		"unix:/a/b%20c?db=1":                     {Mode: Standalone, Unix: true, Addrs: []string{"/a/b c"}, DB: 1},
		"unix:///a":                              {Mode: Standalone, Unix: true, Addrs: []string{"/a"}},
		"unix://u:p@/a":                          {Mode: Standalone, Unix: true, Addrs: []string{"/a"}, Username: "u", Password: "p"},
		"redis-sentinel://a,b:2,[::1]/m%2F?db=4": {Mode: Sentinel, Addrs: []string{"a:26379", "b:2", "[::1]:26379"}, Master: "m/", DB: 4},
		"rediss-sentinel://a/m":                  {Mode: Sentinel, Addrs: []string{"a:26379"}, Master: "m", TLS: true},
		"redis-cluster://a:1,b":                  {Mode: Cluster, Addrs: []string{"a:1", "b:6379"}},
		"rediss-cluster://u:p@a/":                {Mode: Cluster, Addrs: []string{"a:6379"}, TLS: true, Username: "u", Password: "p"},
	} {
		got, err := ParseURL(text)
		if err != nil || !equal(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if strings.Contains(got.String(), "p%40") || strings.Contains(got.String(), ":p@") {
			t.Errorf("%s: got %s, want it without the password", text, got)
		}
		again, err := ParseURL(strings.Replace(got.String(), ":***@", ":p@", 1))
		again.Password = got.Password
		if err != nil || !equal(again, got) {
			t.Errorf("%s: got %+v, %v from %s, want it unchanged", text, again, err, got)
		}
	}
}

func equal(a, b Target) bool {
	same := strings.Join(a.Addrs, " ") == strings.Join(b.Addrs, " ")
	a.Addrs, b.Addrs = nil, nil
	return same && a.Mode == b.Mode && a.Unix == b.Unix && a.TLS == b.TLS && a.Master == b.Master && a.DB == b.DB && a.Username == b.Username && a.Password == b.Password
}

func TestBadURLsAreRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no scheme",
		"localhost":                      "no scheme",
		"localhost:6379":                 "unknown scheme",
		"http://h":                       "unknown scheme",
		"redis://":                       "not host",
		"redis://:6379":                  "not host",
		"redis://h:0":                    "from 1 to 65535",
		"redis://h:65536":                "from 1 to 65535",
		"redis://h:x":                    "from 1 to 65535",
		"redis://a,b":                    "one host",
		"redis://h/x":                    "number of a database",
		"redis://h/-1":                   "number of a database",
		"redis://h/1?db=2":               "twice",
		"redis://h?db=1&db=2":            "twice",
		"redis://h?timeout=3":            "unknown parameter",
		"redis://u:secret%zz@h":          "hexadecimal",
		"redis://u:secret#x@h":           "%23",
		"unix:":                          "path of a socket",
		"unix://h/a":                     "no host",
		"redis-sentinel://a,b":           "name",
		"redis-sentinel://a,,b/m":        "not host",
		"redis-cluster://a/1":            "no path",
		"redis-cluster://a?db=1":         "one database",
		"redis://user:secret@h/1/secret": "number of a database",
	} {
		_, err := ParseURL(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "user:secret") {
			t.Errorf("%s: got %v, want no password", text, err)
		}
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"files for TLS":        func(o *Options) { o.CAFile = "ca" },
		"TLS: read authoriti":  func(o *Options) { o.Target.TLS = true; o.CAFile = "none" },
		"given together":       func(o *Options) { o.Target.TLS = true; o.CertFile = "c" },
		"password is given tw": func(o *Options) { o.Target.Password = "p"; o.PasswordFile = "f" },
		"read password":        func(o *Options) { o.PasswordFile = "none" },
		"Sentinels is given":   func(o *Options) { o.SentinelUsername = "s" },
		"0 or more":            func(o *Options) { o.Replicas = -1 },
		"no address":           func(o *Options) { o.Target.Addrs = nil },
		"a millisecond":        func(o *Options) { o.Timeout = 1 },
	} {
		o := options(t, "redis://h")
		change(&o)
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestKeysAreInTheSlotsThatRedisSays(t *testing.T) {
	// As CLUSTER KEYSLOT says.
	for key, want := range map[string]int{"123456789": 12739, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "": 0} {
		if got := script.Slot(key); got != want {
			t.Errorf("%q: got %d, want %d", key, got, want)
		}
	}
}
