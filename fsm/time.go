package fsm

import (
	"math"
	"time"
)

// Time is a moment on the cluster's own clock, in microseconds. It is not time.Time: nobody should
// pass time.Now by habit. The clock stands still while there is no leader and never goes back.
type Time int64

// never is later than every moment: the end of a lease that does not end.
const never Time = math.MaxInt64

// plus returns the moment d microseconds later, or never where that cannot be counted.
func (t Time) plus(d int64) Time {
	if d > 0 && int64(t) > math.MaxInt64-d {
		return never
	}
	return t + Time(d)
}

// micros converts to microseconds, rounded up: a lease never ends early.
func micros(d time.Duration) int64 {
	whole := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		whole++
	}
	return whole
}

// duration converts microseconds to a time.Duration, or the longest one where they do not fit.
func duration(us int64) time.Duration {
	if us > math.MaxInt64/int64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}

// since returns the microseconds from earlier to t.
func (t Time) since(earlier Time) int64 { return int64(t) - int64(earlier) }
