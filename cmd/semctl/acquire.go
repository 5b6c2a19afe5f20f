package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/semserver/semserver/cmd/semctl/internal/remote"
)

type acquireCommand struct {
	keyArgument
	Holder   string         `placeholder:"ID" help:"Id to hold under (default: a fresh one, which is printed)."`
	Permits  int64          `default:"1" placeholder:"N" help:"How many, all or none (default: ${default})."`
	Lease    *time.Duration `xor:"lease" placeholder:"TIME" help:"How long they are held unless renewed (default: the semaphore's or the server's)."`
	Persist  bool           `xor:"lease" help:"Without end, until they are released. Needs --holder."`
	Wait     time.Duration  `default:"0s" placeholder:"TIME" help:"How long to wait in line (default: not at all)."`
	Capacity *int64         `placeholder:"N" help:"Create the semaphore with this capacity if there is none."`
	Label    string         `placeholder:"TEXT" help:"What listings show in place of this program's address."`
	Fresh    bool           `help:"If the holder holds already: a new token and a new lease, so that whoever used the id before is fenced off."`
	Slots    bool           `help:"Print every slot."`
}

// Help is printed below the summary.
func (*acquireCommand) Help() string {
	return `The permits stay until they are released, or until the lease ends: nobody renews them. For one command, "semctl run" does all of that. Asking again with the same holder takes nothing twice. Exit status 75: no permit in time.`
}

func (c *acquireCommand) Run(ctx context.Context, s *session) error {
	command, err := c.command()
	if err != nil {
		return err
	}
	servers := remote.Open(s.servers)
	defer servers.Close()
	grant, err := c.acquire(ctx, servers, command)
	switch {
	case err != nil:
		return err
	case grant == nil && s.json:
		if err := s.printJSON(object{{"semaphore", text(c.Name)}, {"granted", false}}); err != nil {
			return err
		}
		return exit(exitNotInTime)
	case grant == nil:
		return fail(exitNotInTime, "%s: no permit in time", visible(c.Name))
	}
	if err := c.print(s, grant); err != nil {
		c.giveBack(ctx, servers, *grant) // under an id that nobody has been told
		return err
	}
	return nil
}

// command is the request. Every attempt waits for what is left of --wait.
func (c *acquireCommand) command() (remote.Command, error) {
	made := c.Holder == ""
	if made {
		c.Holder = newHolder()
	}
	w := words{all: []any{"SEM.ACQUIRE", c.Name, "HOLDER", c.Holder, "PERMITS", c.Permits}}
	w.duration("LEASE", "--lease", c.Lease)
	var wait words
	wait.duration("WAIT", "--wait", &c.Wait)
	switch {
	case c.Persist && made:
		return remote.Command{}, fail(exitUsage, "--persist needs --holder: nobody could release what is held under an id that was lost")
	case w.err != nil:
		return remote.Command{}, w.err
	case wait.err != nil:
		return remote.Command{}, wait.err
	}
	for _, o := range []struct {
		name  string
		given bool
	}{{"PERSIST", c.Persist}, {"FRESH", c.Fresh}, {"SLOTS", c.Slots}} {
		if o.given {
			w.all = append(w.all, o.name)
		}
	}
	if c.Capacity != nil {
		w.all = append(w.all, "CAPACITY", *c.Capacity)
	}
	option(&w, "LABEL", c.Label)
	end := time.Now().Add(c.Wait)
	return remote.Command{Blocks: c.Wait, Args: func() []any {
		left := min(c.Wait, time.Until(end)).Milliseconds()
		return append(w.all[:len(w.all):len(w.all)], "WAIT", max(0, left))
	}}, nil
}

// newHolder makes an id for one attempt, by which people recognise this process.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "semctl"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}

// leaveTime is how long an interrupted request is followed to its end.
const leaveTime = 2 * time.Second

// acquire asks, and waits if need be. nil: no permit in time.
//
// When ctx ends the request is not dropped, for it may just have been granted: it is made to leave the
// line, and its answer says whether there is something to give back.
func (c *acquireCommand) acquire(ctx context.Context, servers *remote.Servers, command remote.Command) (*remote.Grant, error) {
	asked, stop := context.WithCancel(context.WithoutCancel(ctx))
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	var reply remote.Reply
	var err error
	answered := make(chan struct{})
	asking.Go(func() {
		defer close(answered)
		reply, err = servers.Do(asked, command)
	})
	select {
	case <-answered:
		if err != nil || reply.Value == nil {
			return nil, err
		}
		return c.confirmGrant(ctx, servers, reply)
	case <-ctx.Done():
	}
	leaving, cancel := context.WithTimeout(asked, leaveTime)
	defer cancel()
	// Whether it stood in line shows in its own answer.
	_, _ = servers.Do(leaving, remote.Words("SEM.CANCEL", c.Name, c.Holder))
	select {
	case <-answered:
		if grant, err := remote.ReadGrant(reply.Value); err == nil {
			c.giveBack(ctx, servers, grant)
		}
	case <-leaving.Done():
	}
	return nil, ctx.Err()
}

// confirmGrant reads a grant. Whoever waited does not know how old it is, so it is renewed then: what
// is returned counts from now.
func (c *acquireCommand) confirmGrant(ctx context.Context, servers *remote.Servers, reply remote.Reply) (*remote.Grant, error) {
	grant, err := remote.ReadGrant(reply.Value)
	if err != nil || c.Wait == 0 {
		return &grant, err
	}
	renewed, err := servers.Do(ctx, remote.Words("SEM.RENEW", c.Name, c.Holder, "TOKEN", grant.Token))
	if err != nil {
		c.giveBack(ctx, servers, grant)
		return nil, fmt.Errorf("renew after the wait: %w", err)
	}
	lease, _ := renewed.Value.(int64)
	if lease == 0 {
		return nil, fail(exitNotInTime, "%s: a permit was granted, and its lease ended before the answer arrived", visible(c.Name))
	}
	if grant.Lease = remote.Forever; lease > 0 {
		grant.Lease = ms(lease)
	}
	return &grant, nil
}

// giveBack releases a grant that nobody will be told of; one that the holder had before is left alone.
// If it fails, the lease ends it.
func (c *acquireCommand) giveBack(ctx context.Context, servers *remote.Servers, grant remote.Grant) {
	if grant.Replayed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	_, _ = servers.Do(ctx, remote.Words("SEM.RELEASE", c.Name, c.Holder, "TOKEN", grant.Token))
}

func (c *acquireCommand) print(s *session, g *remote.Grant) error {
	o := object{
		{"semaphore", text(c.Name)}, {"granted", true}, {"holder", text(g.Holder)}, {"token", g.Token}, {"slot", g.Slot},
		{"permits", c.Permits}, {"lease_ms", millis(g.Lease)}, {"replayed", g.Replayed},
	}
	var t table
	t.add("holder", visible(g.Holder))
	t.add("token", number(g.Token))
	t.add("slot", number(g.Slot))
	t.add("permits", number(c.Permits))
	t.add("lease", span(g.Lease))
	if g.Replayed {
		t.add("replayed", "it was held already")
	}
	if c.Slots {
		ranges := [][2]int64{}
		for _, r := range g.Slots {
			ranges = append(ranges, [2]int64{r.First, r.Last})
		}
		o = append(o, member{"slots", ranges})
		t.add("slots", fmt.Sprint(ranges))
	}
	if s.json {
		return s.printJSON(o)
	}
	return s.printTable(t)
}
