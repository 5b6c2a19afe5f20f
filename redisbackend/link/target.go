package link

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Mode is how a Redis is deployed. It is said by the URL and never guessed.
type Mode string

// The modes.
const (
	Standalone Mode = "standalone"
	Sentinel   Mode = "sentinel"
	Cluster    Mode = "cluster"
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// Target says where a Redis is, as [ParseURL] has read it.
type Target struct {
	Mode     Mode
	Addrs    []string // host:port of the server, of Sentinels, or of some nodes of the cluster; or the path of a socket
	Unix     bool     // Addrs is the path of a Unix socket
	TLS      bool
	Master   string // the name that the Sentinels know, where Mode is Sentinel
	DB       int
	Username string
	Password string
}

// forms are what a URL may look like, for errors.
const forms = "redis://host:port/db, rediss:// for TLS, unix:/path?db=n, redis-sentinel://host:port,…/MASTER?db=n, redis-cluster://host:port,…, rediss-sentinel:// or rediss-cluster://"

// ParseURL reads a URL:
//
//	redis://[user:password@]host[:port][/db]                rediss:// over TLS
//	unix:[//user:password@]/path[?db=n]
//	redis-sentinel://[user:password@]host[:port],…/MASTER[?db=n]    rediss-sentinel:// over TLS
//	redis-cluster://[user:password@]host[:port],…                   rediss-cluster:// over TLS
//
// What is not a letter, a digit or one of "-._~" in a user, a password or a name is percent-encoded. No
// error shows the password.
func ParseURL(text string) (Target, error) {
	scheme, rest, found := strings.Cut(text, ":")
	if !found {
		return Target{}, fmt.Errorf("no scheme: it has one of the forms %s", forms)
	}
	rest = strings.TrimPrefix(rest, "//")
	if strings.Contains(rest, "#") {
		return Target{}, errors.New("# must be written %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, slash := strings.Cut(rest, "/")
	t, err := schemeOf(strings.ToLower(scheme))
	if err != nil {
		return Target{}, err
	}
	if t.Unix {
		path = "/" + path
	}
	if authority, err = t.login(authority); err != nil {
		return Target{}, err
	}
	if err := t.place(authority, path); err != nil {
		return Target{}, err
	}
	if t.Mode == Cluster && slash && path != "" {
		return Target{}, errors.New("a Redis Cluster has no path: it has one database, 0")
	}
	return t, t.query(query)
}

// schemeOf is a target as far as the scheme tells.
func schemeOf(scheme string) (Target, error) {
	switch scheme {
	case "redis", "rediss":
		return Target{Mode: Standalone, TLS: scheme == "rediss"}, nil
	case "unix":
		return Target{Mode: Standalone, Unix: true}, nil
	case "redis-sentinel", "rediss-sentinel":
		return Target{Mode: Sentinel, TLS: strings.HasPrefix(scheme, "rediss")}, nil
	case "redis-cluster", "rediss-cluster":
		return Target{Mode: Cluster, TLS: strings.HasPrefix(scheme, "rediss")}, nil
	}
	return Target{}, fmt.Errorf("unknown scheme %.20q: it has one of the forms %s", scheme, forms)
}

// login takes user and password off the authority.
func (t *Target) login(authority string) (string, error) {
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return authority, nil
	}
	user, password, _ := strings.Cut(authority[:at], ":")
	var err1, err2 error
	t.Username, err1 = url.PathUnescape(user)
	t.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return "", errors.New("user or password: % must be followed by two hexadecimal digits")
	}
	return authority[at+1:], nil
}

// place reads hosts and path.
func (t *Target) place(authority, path string) error {
	name, err := url.PathUnescape(path)
	switch {
	case err != nil:
		return errors.New("path: % must be followed by two hexadecimal digits")
	case t.Unix && authority != "":
		return errors.New("unix: has no host: it has the form unix:/path")
	case t.Unix && name == "/":
		return errors.New("unix: needs the path of a socket")
	case t.Unix:
		t.Addrs = []string{name}
		return nil
	case t.Mode == Sentinel && name == "":
		return errors.New("the name that the Sentinels know is missing: redis-sentinel://host:port,…/MASTER")
	case t.Mode == Sentinel:
		t.Master = name
	case t.Mode == Standalone && name != "":
		if err := t.database(name); err != nil {
			return err
		}
	}
	port := redisPort
	if t.Mode == Sentinel {
		port = sentinelPort
	}
	hosts := strings.Split(authority, ",")
	if t.Mode == Standalone && len(hosts) > 1 {
		return errors.New("redis:// has one host: for several there are redis-sentinel:// and redis-cluster://")
	}
	for _, h := range hosts {
		addr, err := address(h, port)
		if err != nil {
			return err
		}
		t.Addrs = append(t.Addrs, addr)
	}
	return nil
}

// address completes a host with the usual port.
func address(host, port string) (string, error) {
	if !strings.Contains(host, ":") || strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host += ":" + port
	}
	name, number, err := net.SplitHostPort(host)
	if err != nil || name == "" {
		return "", fmt.Errorf("%.100q is not host or host:port", host)
	}
	if n, err := strconv.ParseUint(number, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%.100q: a port is a number from 1 to 65535", host)
	}
	return net.JoinHostPort(name, number), nil
}

func (t *Target) database(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return fmt.Errorf("%.20q is not the number of a database", text)
	}
	t.DB = int(n)
	return nil
}

func (t *Target) query(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("what follows the ? must be db=n")
	}
	for key, all := range values {
		switch {
		case key != "db":
			return fmt.Errorf("unknown parameter %.50q: there is db", key)
		case len(all) > 1:
			return errors.New("db is given twice")
		case t.Mode == Cluster:
			return errors.New("a Redis Cluster has one database, 0")
		case t.DB != 0:
			return errors.New("the database is given twice, by the path and by db")
		}
		if err := t.database(all[0]); err != nil {
			return err
		}
	}
	return nil
}

// String is the URL without the password.
func (t Target) String() string {
	scheme := "redis"
	if t.TLS {
		scheme = "rediss"
	}
	login := url.PathEscape(t.Username)
	if t.Password != "" {
		login += ":***"
	}
	if login != "" {
		login += "@"
	}
	database := ""
	if t.DB != 0 {
		database = fmt.Sprintf("?db=%d", t.DB)
	}
	switch hosts := strings.Join(t.Addrs, ","); {
	case t.Unix && login != "":
		return "unix://" + login + t.Addrs[0] + database
	case t.Unix:
		return "unix:" + t.Addrs[0] + database
	case t.Mode == Standalone:
		return scheme + "://" + login + hosts + "/" + strconv.Itoa(t.DB)
	case t.Mode == Sentinel:
		return scheme + "-sentinel://" + login + hosts + "/" + url.PathEscape(t.Master) + database
	default:
		return scheme + "-cluster://" + login + hosts
	}
}
