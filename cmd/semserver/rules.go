package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/semserver/semserver/semaphore"
)

// checkRules refuses rules of --default-capacity that could not mean what was meant.
func checkRules(rules []capacityRule) error {
	seen := make(map[string]bool, len(rules))
	for _, r := range rules {
		if len(r.Pattern) > semaphore.MaxName {
			return fmt.Errorf("--default-capacity: a pattern is longer than %d bytes", semaphore.MaxName)
		}
		if err := checkGlob(r.Pattern); err != nil {
			return fmt.Errorf("--default-capacity: the pattern %.100q: %w", r.Pattern, err)
		}
		if seen[r.Pattern] {
			return fmt.Errorf("--default-capacity: the pattern %.100q is given twice", r.Pattern)
		}
		seen[r.Pattern] = true
		if err := within("--default-capacity "+strconv.Quote(r.Pattern), r.Capacity, 0, semaphore.MaxCapacity); err != nil {
			return err
		}
	}
	return nil
}

// checkGlob refuses what SCAN MATCH, as Redis does, takes in some way or other.
func checkGlob(pattern string) error {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			if i++; i == len(pattern) {
				return errors.New(`nothing follows the last \`)
			}
		case '[':
			end := classEnd(pattern, i+1)
			if end >= len(pattern) {
				return errors.New("a [ is not closed by a ]")
			}
			i = end
		}
	}
	return nil
}

// classEnd returns where the class ends that begins at i; past the end of the pattern: nowhere.
func classEnd(pattern string, i int) int {
	for i < len(pattern) && pattern[i] != ']' {
		switch {
		case pattern[i] == '\\':
			i += 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			i += 3
		default:
			i++
		}
	}
	return i
}
