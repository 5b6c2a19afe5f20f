package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// cpuTick is the unit of processor time in /proc on every Linux that Go runs on.
const cpuTick = 10 * time.Millisecond

// cpuTime is the processor time that a process has used so far. Unlike requests per second it does not
// depend on what else the machine is doing.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	// The name of the program, in parentheses, may contain anything; fields are counted behind it.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if len(fields) < 13 {
		return 0, fmt.Errorf("read processor time: %q", text)
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(user+system) * cpuTick, nil
}
