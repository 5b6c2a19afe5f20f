package top

import "slices"

// cursor is the selected row of a list whose rows come and go.
type cursor struct {
	id    string // of the selected row
	index int
}

// settle finds the selected row among those that there are now. When it has gone, what stands in its
// place is selected.
func (c *cursor) settle(ids []string) {
	if i := slices.Index(ids, c.id); i >= 0 && c.id != "" {
		c.index = i
		return
	}
	c.index = max(0, min(c.index, len(ids)-1))
	c.id = ""
	if len(ids) > 0 {
		c.id = ids[c.index]
	}
}

// move selects the row that far below; a negative distance is above.
func (c *cursor) move(ids []string, distance int) {
	c.settle(ids)
	c.index = max(0, min(c.index+distance, len(ids)-1))
	if len(ids) > 0 {
		c.id = ids[c.index]
	}
}

// window is the part of a list that fits, with the selected row in it.
func (c *cursor) window(total, rows int) (first, last int) {
	if total <= rows {
		return 0, total
	}
	first = max(0, min(c.index-rows/2, total-rows))
	return first, first + rows
}
