// Command etcd locks and unlocks in an etcd as fast as it goes, each worker a lock of its own, and prints
// how many pairs a second that were. It is a module of its own: the server needs nothing of etcd.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	endpoints := flag.String("endpoints", "127.0.0.1:2379", "`addresses` of the nodes, separated by commas")
	workers := flag.Int("workers", 50, "`number` of clients")
	length := flag.Duration("for", 5*time.Second, "how long")
	at := flag.String("at", "all nodes", "`which` nodes the clients connect to: leader, follower, all nodes")
	flag.Parse()
	rate, err := run(strings.Split(*endpoints, ","), *at, *workers, *length)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
	fmt.Println(rate)
}

func run(endpoints []string, at string, workers int, length time.Duration) (float64, error) {
	chosen, err := choose(endpoints, at)
	if err != nil {
		return 0, err
	}
	return measure(chosen, workers, length)
}

// choose returns the endpoints that the clients connect to.
func choose(endpoints []string, at string) ([]string, error) {
	if at == "all nodes" {
		return endpoints, nil
	}
	if at != "leader" && at != "follower" {
		return nil, fmt.Errorf("there are no clients at %q", at)
	}
	client, err := etcd.New(etcd.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, endpoint := range endpoints {
		status, err := client.Status(ctx, endpoint)
		if err != nil {
			return nil, fmt.Errorf("ask who leads: %w", err)
		}
		if leads := status.Leader == status.Header.MemberId; leads == (at == "leader") {
			return []string{endpoint}, nil
		}
	}
	return nil, fmt.Errorf("no node is a %s", at)
}

// measure returns lock and unlock pairs per second.
func measure(endpoints []string, workers int, length time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+length)
	defer cancel()
	locks := make([]*concurrency.Mutex, workers)
	for i := range locks {
		client, err := etcd.New(etcd.Config{Endpoints: endpoints[i%len(endpoints) : i%len(endpoints)+1], DialTimeout: 10 * time.Second})
		if err != nil {
			return 0, fmt.Errorf("connect: %w", err)
		}
		defer client.Close()
		session, err := concurrency.NewSession(client, concurrency.WithContext(ctx))
		if err != nil {
			return 0, fmt.Errorf("begin a session: %w", err)
		}
		locks[i] = concurrency.NewMutex(session, fmt.Sprintf("/bench/%d", i))
	}
	var pairs atomic.Int64
	var failed atomic.Pointer[error]
	var work sync.WaitGroup
	began := time.Now()
	for _, lock := range locks {
		work.Go(func() {
			for time.Since(began) < length {
				if err := pair(ctx, lock); err != nil {
					failed.Store(&err)
					return
				}
				pairs.Add(1)
			}
		})
	}
	work.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(pairs.Load()) / time.Since(began).Seconds(), nil
}

func pair(ctx context.Context, lock *concurrency.Mutex) error {
	if err := lock.Lock(ctx); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := lock.Unlock(ctx); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
