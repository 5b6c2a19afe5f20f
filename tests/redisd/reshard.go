package redisd

import (
	"fmt"
	"strings"
)

// migrateTimeout is how long a MIGRATE of one key may take, in milliseconds.
const migrateTimeout = 10_000

// Reshard moves a slot and its keys to another master, key by key, while clients go on.
func (c *Cluster) Reshard(slot int64, to *Server) error {
	from, err := c.OpenSlot(slot, to)
	if err != nil || from == to {
		return err
	}
	for {
		reply, err := from.Do("CLUSTER", "GETKEYSINSLOT", slot, 10)
		if err != nil {
			return fmt.Errorf("list keys of slot %d: %w", slot, err)
		}
		keys := reply.([]any)
		if len(keys) == 0 {
			return c.CloseSlot(slot, to)
		}
		for _, key := range keys {
			if err := MoveKey(from, to, key); err != nil {
				return err
			}
		}
	}
}

// OpenSlot begins to move a slot: its owner, which is returned, asks for missing keys at the other.
func (c *Cluster) OpenSlot(slot int64, to *Server) (*Server, error) {
	from, err := c.ownerOf(slot)
	if err != nil || from == to {
		return from, err
	}
	source, err := from.id()
	if err != nil {
		return nil, err
	}
	target, err := to.id()
	if err != nil {
		return nil, err
	}
	if _, err := to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", source); err != nil {
		return nil, fmt.Errorf("import slot %d: %w", slot, err)
	}
	if _, err := from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", target); err != nil {
		return nil, fmt.Errorf("migrate slot %d: %w", slot, err)
	}
	return from, nil
}

// MoveKey moves one key of a slot that was opened.
func MoveKey(from, to *Server, key any) error {
	host, port, _ := strings.Cut(to.Addr, ":")
	if _, err := from.Do("MIGRATE", host, port, key, 0, migrateTimeout); err != nil {
		return fmt.Errorf("migrate a key: %w", err)
	}
	return nil
}

// CloseSlot ends the move of a slot whose keys are all at the other master, and waits until every node
// that lives knows.
func (c *Cluster) CloseSlot(slot int64, to *Server) error {
	target, err := to.id()
	if err != nil {
		return err
	}
	if _, err := to.Do("CLUSTER", "SETSLOT", slot, "NODE", target); err != nil {
		return fmt.Errorf("give slot %d: %w", slot, err)
	}
	for _, s := range c.Servers {
		if s == to || s.Field("role") != "master" {
			continue
		}
		if _, err := s.Do("CLUSTER", "SETSLOT", slot, "NODE", target); err != nil {
			return fmt.Errorf("give slot %d: %w", slot, err)
		}
	}
	return nil
}
