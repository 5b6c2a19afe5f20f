package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const semaphore = "cache-loader"

func main() {
	addr := flag.String("addr", "127.0.0.1:7360", "addresses of the semserver, with commas between")
	semctl := flag.String("semctl", "semctl", "the program semctl")
	pods := flag.Int("pods", 121, "how many pods start")
	database := flag.String("database", "", "be a pod and load from there (the story starts itself so)")
	pod := flag.String("pod", "", "the name of the pod to be")
	flag.Parse()

	ctx := context.Background()
	var err error
	if *database != "" {
		err = runPod(ctx, *database, *pod)
	} else {
		err = tell(ctx, *semctl, *addr, *pods, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pods:", err)
		os.Exit(1)
	}
}

// tell plays the three acts.
func tell(ctx context.Context, semctl, addr string, pods int, out io.Writer) error {
	guard := []string{
		semctl, "run", "--addr", addr, "--sem", semaphore, "--capacity", fmt.Sprint(bearable),
		"--wait", "5m", "--lease", "3s", "--quiet", "--",
	}
	fmt.Fprintf(out, "%d pods start at once; the database bears %d loads at a time\n", pods, bearable)
	bare, err := play(ctx, out, "without semctl", &act{}, pods)
	if err != nil {
		return err
	}
	guarded, err := play(ctx, out, "with semctl run", &act{guard: guard}, pods)
	if err != nil {
		return err
	}
	killed, err := play(ctx, out, "with semctl run, and a third is killed while it loads", &act{guard: guard, deadly: true}, pods)
	if err != nil {
		return err
	}
	if bare.failed == 0 || guarded.failed > 0 || killed.failed > 0 || max(guarded.most, killed.most) > bearable || killed.killed == 0 {
		return errors.New("the story did not go as it should")
	}
	return nil
}

func play(ctx context.Context, out io.Writer, title string, a *act, pods int) (outcome, error) {
	fmt.Fprintf(out, "\n%s\n", title)
	o, err := a.run(ctx, pods)
	if err != nil {
		return o, err
	}
	verdict := "the database held"
	if o.most > bearable {
		verdict = "the database broke down"
	}
	fmt.Fprintf(out, "  at most %d loaded at a time: %s\n", o.most, verdict)
	if o.killed > 0 {
		fmt.Fprintf(out, "  %d were killed, and started again\n", o.killed)
	}
	fmt.Fprintf(out, "  %d pods have their cache, %d failed\n", o.loaded, o.failed)
	return o, nil
}
