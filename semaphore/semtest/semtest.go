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

// Run checks the engine that open returns. It calls open once; the engine must have
// [semaphore.DefaultLimits], and open leaves its closing to t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) semaphore.Backend) {
	backend := open(t)
	for _, c := range aloneCases() {
		t.Run(c.name, func(t *testing.T) { c.run(newSem(t, backend)) })
	}
	for _, group := range [][]testCase{
		batchCases(), bookCases(), capacityCases(), createCases(), fencingCases(), leaseCases(), limitCases(),
		lineCases(), orderCases(), loadCases(), quitCases(), repeatCases(), undeliveredCases(),
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newSem(t, backend))
			})
		}
	}
}

// newSem names a semaphore that no other case uses. It does not exist yet.
func newSem(t *testing.T, backend semaphore.Backend) *sem {
	return &sem{T: t, backend: backend, key: t.Name()}
}

// beside is another semaphore of the same case.
func (s *sem) beside(name string) *sem {
	return &sem{T: s.T, backend: s.backend, key: fmt.Sprintf("%s/%s", s.key, name)}
}
