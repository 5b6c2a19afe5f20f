package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semserver/semserver/semaphore"
)

// rateTrust is by how much the rate of a node's clock may be wrong.
const rateTrust = 0.01

// history is what clients saw. Times are those of the bubble, which an outside observer's clock shows.
type history struct {
	mu     sync.Mutex
	grants []*observed
	places []*stand
	faults []string // what contradicts the promises as soon as it is seen
}

// observed is a grant as its client saw it.
type observed struct {
	key, holder string
	token       int64
	slots       []semaphore.Range
	replayed    bool
	asked, told time.Duration // the request left, the reply came
	sure        time.Duration // until when it is certainly live: released, or its lease may have ended
}

// stand is a wait that certainly stood in line from one moment on.
type stand struct {
	key           string
	asked, stands time.Duration // when its request was made, when it was known to stand in line
	token         int64         // of the grant that it ended with; 0: of none
}

func (h *history) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

func (h *history) granted(o *observed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants = append(h.grants, o)
}

func (h *history) stood(p *stand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.places = append(h.places, p)
}

// check returns what contradicts the promises.
func (h *history) check(capacity map[string]int64) []string {
	faults := slices.Clone(h.faults)
	byKey := make(map[string][]*observed)
	for _, o := range h.grants {
		byKey[o.key] = append(byKey[o.key], o)
	}
	for key, grants := range byKey {
		faults = append(faults, overlaps(key, grants, capacity[key])...)
	}
	faults = append(faults, tokens(h.grants)...)
	return append(faults, order(h.places)...)
}

// overlaps counts, at the moments when grants were told, those that are certainly live then.
func overlaps(key string, grants []*observed, capacity int64) (faults []string) {
	for _, at := range grants {
		taken := make(map[int64]string)
		for _, o := range grants {
			if o.told > at.told || o.sure <= at.told {
				continue
			}
			for _, r := range o.slots {
				for slot := r.First; slot <= r.Last; slot++ {
					if other, twice := taken[slot]; twice && other != o.holder {
						faults = append(faults, fmt.Sprintf("%s: at %v, %s and %s are in slot %d", key, at.told, other, o.holder, slot))
					}
					taken[slot] = o.holder
				}
			}
		}
		if int64(len(taken)) > capacity {
			faults = append(faults, fmt.Sprintf("%s: at %v, %d permits are held, of %d", key, at.told, len(taken), capacity))
		}
	}
	return faults
}

// tokens are unique, and grow from what was told before a request to what came of it.
func tokens(grants []*observed) (faults []string) {
	holders := make(map[int64]string)
	for _, o := range grants {
		if other, twice := holders[o.token]; twice && other != o.key+o.holder {
			faults = append(faults, fmt.Sprintf("token %d was given to %s and to %s", o.token, other, o.key+o.holder))
		}
		holders[o.token] = o.key + o.holder
	}
	byTold := slices.SortedFunc(slices.Values(grants), func(a, b *observed) int { return cmp.Compare(a.told, b.told) })
	byAsked := slices.SortedFunc(slices.Values(grants), func(a, b *observed) int { return cmp.Compare(a.asked, b.asked) })
	highest := &observed{}
	for _, o := range byAsked {
		for len(byTold) > 0 && byTold[0].told < o.asked {
			if byTold[0].token > highest.token {
				highest = byTold[0]
			}
			byTold = byTold[1:]
		}
		if !o.replayed && o.token <= highest.token {
			faults = append(faults, fmt.Sprintf("%s asked at %v and got token %d, after %d was told at %v", o.holder, o.asked, o.token, highest.token, highest.told))
		}
	}
	return faults
}

// order: who stood in line before another asked is granted before it.
func order(places []*stand) (faults []string) {
	for _, a := range places {
		for _, b := range places {
			if a.key == b.key && a.token > 0 && b.token > 0 && a.stands < b.asked && a.token > b.token {
				faults = append(faults, fmt.Sprintf("%s: who stood in line since %v got token %d, who asked at %v got %d", a.key, a.stands, a.token, b.asked, b.token))
			}
		}
	}
	return faults
}
