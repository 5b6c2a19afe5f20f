package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
)

// runPod is a pod: it loads its cache when its input ends, which is for all pods in the same moment.
func runPod(ctx context.Context, database, name string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+database+"/rows?pod="+name, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("load: the database says %s", answer.Status)
	}
	return nil
}
