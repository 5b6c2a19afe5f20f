package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// rosterFile keeps what is known of the members, so that a dead one is known by its name also to a leader that
// has never heard it.
const rosterFile = "roster.json"

// name is what a member is called, where it is reached, and what it reads.
type name struct {
	Node    string   `json:"node"`
	Label   string   `json:"label"`
	Chosen  bool     `json:"chosen"`
	Address string   `json:"address"`
	Client  string   `json:"client"`
	Reads   versions `json:"reads"`
}

// names returns what is known of what members are called, by id.
func (r *roster) names() []name {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []name
	for id, h := range r.cards {
		all = append(all, name{id, h.card.Label, h.card.Chosen, h.card.Address, h.card.Client, h.card.Reads})
	}
	slices.SortFunc(all, func(a, b name) int { return compareNodes(card{Node: a.Node}, card{Node: b.Node}) })
	return all
}

// remember takes up the names of a former life. None of the members counts as heard.
func (r *roster) remember(names []name) {
	for _, n := range names {
		r.note(card{Node: n.Node, Label: n.Label, Chosen: n.Chosen, Address: n.Address, Client: n.Client, Reads: n.Reads}, time.Time{})
	}
}

// loadRoster reads the names that saveRoster has written.
func (m *membership) loadRoster() {
	text, err := os.ReadFile(filepath.Join(m.cfg.DataDir, rosterFile))
	var names []name
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Warn("what the members are called is not known until they are heard", "error", fmt.Errorf("read roster: %w", err))
		return
	}
	m.roster.remember(names)
	m.named = text
}

// saveRoster writes the names where they have changed.
func (m *membership) saveRoster() {
	text, err := json.MarshalIndent(m.roster.names(), "", "  ")
	if err == nil && !bytes.Equal(text, m.named) {
		err = writeDurably(filepath.Join(m.cfg.DataDir, rosterFile), text)
	}
	if err != nil {
		m.try("cannot write the roster", err)
		return
	}
	m.named = text
}
