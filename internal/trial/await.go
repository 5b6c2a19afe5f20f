package trial

import (
	"fmt"
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen. It is far beyond what anything needs: when it
// is over, something hangs.
const Patience = 30 * time.Second

// lookEvery is the time between two looks at a condition.
const lookEvery = 5 * time.Millisecond

// Await looks until holds returns nil, and ends the test with its last error when Patience is over. It
// must be called by the goroutine of the test.
func Await(t testing.TB, holds func() error) {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(lookEvery) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", Patience, err)
		}
	}
}

// Until is Await for a condition that is true or not; what names it.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Await(t, func() error {
		if !holds() {
			return fmt.Errorf("it never came true: %s", what)
		}
		return nil
	})
}
