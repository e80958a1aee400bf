package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is which keys a part of the settings has.
type shape struct {
	kinds map[string]string // of every key
	open  map[string]bool   // keys that may hold maps and lists
}

// misfits reports what stands under the prefixes and has no place in the shape: unknown keys, keys written twice, and
// maps or values where the other is wanted.
func (s *Source) misfits(prefixes []string, sh shape) []fault {
	entries := maps.Clone(s.written.entries)
	if entries == nil {
		entries = make(map[string]any)
	}
	for key, text := range s.overrides {
		if _, ok := entries[key]; !ok {
			entries[key] = text
		}
	}
	var faults []fault
	reported := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return key == p || strings.HasPrefix(key, p+".") }) {
			continue
		}
		f := sh.misfit(key, entries[key])
		if both, twice := s.written.twice[key]; twice {
			f = &fault{key, fmt.Sprintf("is written twice, as %s; remove one", both)}
		}
		if f != nil && !reported[f.key] {
			reported[f.key] = true
			faults = append(faults, *f)
		}
	}
	return faults
}

func (sh shape) misfit(key string, value any) *fault {
	_, branch := mapping(value)
	if kind, known := sh.kinds[key]; known {
		if value == nil || branch && !sh.open[key] {
			return &fault{key, fmt.Sprintf("got %s, want %s; or remove the key", describe(value), kind)}
		}
		return nil
	}
	for parent := key; parent != ""; {
		parent = parent[:max(0, strings.LastIndexByte(parent, '.'))]
		if kind, known := sh.kinds[parent]; known && !sh.open[parent] {
			return &fault{parent, fmt.Sprintf("got a map, want %s", kind)}
		} else if known {
			return nil
		}
	}
	for known := range sh.kinds {
		if !strings.HasPrefix(known, key+".") {
			continue
		}
		if value == nil || branch {
			return nil
		}
		found := "a single value"
		if _, list := value.([]any); list {
			found = "a list"
		}
		return &fault{key, fmt.Sprintf("got %s, want a map of settings", found)}
	}
	return &fault{key, "is no setting" + suggestion(key, slices.Collect(maps.Keys(sh.kinds)))}
}
