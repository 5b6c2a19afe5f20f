package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semserver/semserver/client"
)

func load(context.Context) error { return nil }

func ExampleClient_Do() {
	c, err := client.New(client.Config{Addrs: []string{"10.0.0.1:7360", "10.0.0.2:7360", "10.0.0.3:7360"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	err = c.Do(context.Background(), "cache-loader", func(ctx context.Context, _ *client.Permit) error {
		return load(ctx)
	}, client.Capacity(8), client.Wait(5*time.Minute), client.Lease(30*time.Second))
	switch {
	case errors.Is(err, client.ErrNoPermit):
		fmt.Println("eight others load; try again later")
	case err != nil:
		fmt.Println(err)
	}
}

// A program that starts without its cache rather than not at all.
func ExampleWhenUnavailable() {
	c, err := client.New(client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	p, err := c.Acquire(context.Background(), "cache-loader", client.Capacity(8), client.WhenUnavailable(client.FailOpen))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Release()
	if p.Guarded() {
		err = load(p.Context())
	}
	fmt.Println(err)
}
