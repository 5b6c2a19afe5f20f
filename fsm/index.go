package fsm

import "hash/maphash"

// Sizes of an index. A table splits before a search in it takes long, and is small enough that
// splitting it takes microseconds.
const (
	smallestTable = 32
	largestTable  = 1024 // a power of two, as all sizes are
)

// index finds members by holder. It is a hash table in parts: the leading bits of a hash lead through
// a directory to a small table, and a full table is split in two. So it never has to be moved as a
// whole, which would take long. Each member's hash stands beside it, so that a search looks at the
// member that it finds and at no other, and a split at none: with many members every look is a wait
// for memory. The seed is random, lest holders choose ids that collide; no answer depends on it.
type index[T member[T]] struct {
	seed   maphash.Seed
	bits   int
	tables []*table[T] // by the leading bits; next to each other, a table can stand several times
}

// table is open-addressed: a member stands at the place that the trailing bits of its hash name, or
// behind it with no free place between.
type table[T member[T]] struct {
	bits    int      // the leading bits that the hashes in it have in common
	n       int      // members
	hashes  []uint32 // 0: the place is free
	members []T
}

func newIndex[T member[T]]() *index[T] {
	return &index[T]{seed: maphash.MakeSeed(), tables: []*table[T]{newTable[T](smallestTable, 0)}}
}

func newTable[T member[T]](size, bits int) *table[T] {
	return &table[T]{bits: bits, hashes: make([]uint32, size), members: make([]T, size)}
}

// find returns the member of a holder, or nil.
func (x *index[T]) find(holder string) T {
	hash := x.hash(holder)
	t := x.table(hash)
	return t.members[t.seek(hash, holder)]
}

// put adds a member, in the place of another one of the same holder.
func (x *index[T]) put(m T) {
	hash := x.hash(m.holder())
	t := x.table(hash)
	at := t.seek(hash, m.holder())
	if t.hashes[at] != 0 {
		t.members[at] = m
		return
	}
	if t.n < len(t.hashes)/4*3 {
		t.set(at, hash, m)
		return
	}
	x.grow(t, hash)
	x.put(m)
}

// remove takes out m, unless another member of its holder has its place.
func (x *index[T]) remove(m T) {
	hash := x.hash(m.holder())
	t := x.table(hash)
	if at := t.seek(hash, m.holder()); t.members[at] == m {
		t.free(at)
	}
}

// replace puts a copy of m in its place, unless another member of its holder has it.
func (x *index[T]) replace(m, copied T) {
	hash := x.hash(m.holder())
	t := x.table(hash)
	if at := t.seek(hash, m.holder()); t.members[at] == m {
		t.members[at] = copied
	}
}

// hash is never 0.
func (x *index[T]) hash(holder string) uint32 {
	return max(1, uint32(maphash.String(x.seed, holder)))
}

func (x *index[T]) table(hash uint32) *table[T] { return x.tables[hash>>(32-x.bits)] }

// grow makes room in the table of a hash.
func (x *index[T]) grow(t *table[T], hash uint32) {
	if size := len(t.hashes); size < largestTable {
		larger := newTable[T](2*size, t.bits)
		t.move(func(uint32) *table[T] { return larger })
		*t = *larger
		return
	}
	if t.bits == x.bits {
		doubled := make([]*table[T], 0, 2*len(x.tables))
		for _, t := range x.tables {
			doubled = append(doubled, t, t)
		}
		x.tables = doubled
		x.bits++
	}
	// Both halves begin empty: taken out one by one, members would have to close up behind each other.
	halves := [2]*table[T]{newTable[T](len(t.hashes), t.bits+1), newTable[T](len(t.hashes), t.bits+1)}
	t.move(func(hash uint32) *table[T] { return halves[hash>>(31-t.bits)&1] })
	part := x.tables[hash>>(32-t.bits)<<(x.bits-t.bits):][:1<<(x.bits-t.bits)]
	for i := range part {
		part[i] = halves[2*i/len(part)]
	}
}

// seek returns the place of a holder, or the free one where it would stand.
func (t *table[T]) seek(hash uint32, holder string) int {
	for at := t.home(hash); ; at = t.behind(at) {
		if t.hashes[at] == 0 || t.hashes[at] == hash && t.members[at].holder() == holder {
			return at
		}
	}
}

func (t *table[T]) home(hash uint32) int { return int(hash) & (len(t.hashes) - 1) }
func (t *table[T]) behind(at int) int    { return (at + 1) & (len(t.hashes) - 1) }

// distance is how far behind a place another one is.
func (t *table[T]) distance(from, to int) int { return (to - from) & (len(t.hashes) - 1) }

func (t *table[T]) set(at int, hash uint32, m T) {
	t.hashes[at], t.members[at] = hash, m
	t.n++
}

// free takes out a member and closes up: whoever is behind it moves up, if the place is not before
// its home.
func (t *table[T]) free(at int) {
	for next := t.behind(at); t.hashes[next] != 0; next = t.behind(next) {
		if t.distance(t.home(t.hashes[next]), next) >= t.distance(at, next) {
			t.hashes[at], t.members[at] = t.hashes[next], t.members[next]
			at = next
		}
	}
	var none T
	t.hashes[at], t.members[at] = 0, none
	t.n--
}

// move adds all members to other tables.
func (t *table[T]) move(to func(hash uint32) *table[T]) {
	for i, hash := range t.hashes {
		if hash == 0 {
			continue
		}
		other := to(hash)
		at := other.home(hash)
		for other.hashes[at] != 0 {
			at = other.behind(at)
		}
		other.set(at, hash, t.members[i])
	}
}
