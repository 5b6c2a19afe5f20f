package fsm

import (
	"strings"
	"testing"
	"unsafe"
)

func TestGrantKeepsTextsOfItsOwnWhateverTheirLengths(t *testing.T) {
	for size := range 2*shortText + 1 {
		for holder := range size + 1 {
			text := strings.Repeat("h", holder) + strings.Repeat("l", size-holder)
			g := newGrant(text[:holder], text[holder:])
			c := g.copied(1)
			for _, got := range []*grant{g, c} {
				if got.holder() != text[:holder] || got.label() != text[holder:] {
					t.Errorf("got %q and %q, want %q and %q", got.holder(), got.label(), text[:holder], text[holder:])
				}
			}
			if size > 0 && unsafe.StringData(c.text) == unsafe.StringData(g.text) {
				t.Errorf("size %d: a copy keeps the grant that it was made of in memory", size)
			}
		}
	}
}
