package semtest

import (
	"fmt"
	"testing"

	"github.com/semserver/semserver/semaphore"
)

// testCase is one statement about an engine, named by the behaviour.
type testCase struct {
	name string
	run  func(s *sem)
}

// Bounds are the most that an engine can do.
type Bounds struct {
	Capacity int64 // of a semaphore
	Permits  int64 // of a grant
}

// Run checks the engine that open returns. It calls open once; the engine must have
// [semaphore.DefaultLimits], and open leaves its closing to t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) semaphore.Backend) {
	RunWithin(t, Bounds{Capacity: semaphore.MaxCapacity, Permits: semaphore.MaxCapacity}, open)
}

// RunWithin is Run for an engine that has bounds of its own.
func RunWithin(t *testing.T, bounds Bounds, open func(t *testing.T) semaphore.Backend) {
	backend := open(t)
	newSem := func(t *testing.T) *sem {
		return &sem{T: t, backend: backend, bounds: bounds, key: t.Name()} // a name that no other case uses
	}
	for _, c := range aloneCases() {
		t.Run(c.name, func(t *testing.T) { c.run(newSem(t)) })
	}
	for _, group := range [][]testCase{
		batchCases(), bookCases(), capacityCases(), createCases(), fencingCases(), leaseCases(), limitCases(),
		lineCases(), orderCases(), loadCases(), quitCases(), repeatCases(), undeliveredCases(),
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newSem(t))
			})
		}
	}
}

// beside is another semaphore of the same case.
func (s *sem) beside(name string) *sem {
	return &sem{T: s.T, backend: s.backend, bounds: s.bounds, key: fmt.Sprintf("%s/%s", s.key, name)}
}
