package load

import (
	"maps"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what came of a run.
type Report struct {
	Elapsed time.Duration
	Total   Figures
	Addrs   []Figures // of each address, where there are several
	// Most is how many permits of one semaphore the clients held at one time, by their own count.
	Most     int64
	Capacity int64
}

// Figures are those of all clients, or of the clients of one address.
type Figures struct {
	Addr      string
	Granted   int64
	Refused   int64
	Errors    map[string]int64 // by the first word
	PerSecond float64          // grants
	Gap       time.Duration    // the longest time without a grant
	Acquire   Latency
	Release   Latency
}

// Latency is a distribution.
type Latency struct {
	Count                      int64
	Mean                       time.Duration
	P50, P90, P99, P999, Worst time.Duration
}

func latency(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond }
	return Latency{
		Count: h.TotalCount(), Mean: time.Duration(h.Mean() * float64(time.Microsecond)),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Worst: time.Duration(h.Max()) * time.Microsecond,
	}
}

func (r *record) figures(elapsed time.Duration) Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Figures{
		Addr: r.addr, Granted: r.pairs, Refused: r.refused, Errors: maps.Clone(r.errors),
		PerSecond: float64(r.pairs) / elapsed.Seconds(), Gap: r.gap.value(),
		Acquire: latency(r.acquire), Release: latency(r.release),
	}
}

// report adds up the records of all addresses. The gap of all together is not theirs to know.
func report(records []*record, elapsed time.Duration) Report {
	rep := Report{Elapsed: elapsed}
	all := newRecord("")
	for _, r := range records {
		f := r.figures(elapsed)
		rep.Addrs = append(rep.Addrs, f)
		all.acquire.Merge(r.acquire)
		all.release.Merge(r.release)
		all.pairs += f.Granted
		all.refused += f.Refused
		for code, n := range f.Errors {
			all.errors[code] += n
		}
	}
	rep.Total = all.figures(elapsed)
	if len(records) == 1 {
		rep.Addrs = nil
	}
	return rep
}
