package saga

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/norn-go/norn/saga/internal/property"
)

// target is one saga that a message concerns, or will concern if it starts it.
type target struct {
	key   Key
	start bool // nothing live matched: the event may start this saga
}

// match finds, for each route of an event, the sagas that it concerns. It asks the database once.
func (e *Engine) match(ctx context.Context, q querier, m Message, routes []*route) (map[*route][]target, error) {
	pairs := make(map[*route]associations, len(routes))
	var lookups []lookup
	var errs []error
	for _, r := range routes {
		found, err := e.pairs(r, m)
		errs = append(errs, err)
		pairs[r] = found
		for _, name := range r.def.Names() {
			for _, p := range found.all {
				lookups = append(lookups, lookup{name, p.property, p.value})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	found, err := e.store.find(ctx, q, lookups)
	if err != nil {
		return nil, err
	}
	targets := make(map[*route][]target, len(routes))
	for _, r := range routes {
		targets[r] = e.targets(r, m, pairs[r].born, found)
	}
	return targets, nil
}

// targets applies SEMANTICS 3.4: live sagas that match, else the one that the event starts, born with its pairs. Of
// several tombstones it is the one of the id that the event gives, if that is among them.
func (e *Engine) targets(r *route, m Message, born []pair, found []candidate) []target {
	var live []target
	var ended *Key
	id := ""
	if r.start != nil {
		id = startID(r.start, m, born)
	}
	for _, c := range found {
		switch {
		case !slices.Contains(r.def.Names(), c.Type):
		case !c.Ended:
			live = append(live, target{key: Key{c.Type, c.ID}})
		case ended == nil || c.ID == id:
			ended = &Key{c.Type, c.ID}
		}
	}
	switch {
	case len(live) > 0:
		return live
	case r.start == nil:
		return nil
	case ended != nil:
		return []target{{key: *ended, start: true}}
	}
	return []target{{key: Key{r.def.name, id}, start: true}}
}

// startID is the id of the saga that an event starts (SEMANTICS 3.1).
func startID(h *handler, m Message, pairs []pair) string {
	for _, p := range pairs {
		if p.property == h.by[0] {
			return p.value
		}
	}
	return m.ID
}

// associations are the pairs that an event yields on a route, each once.
type associations struct {
	all  []pair // what finds live sagas
	born []pair // those of the start handler, which a new saga begins with
}

func (e *Engine) pairs(r *route, m Message) (associations, error) {
	var pairs associations
	var errs []error
	for _, h := range []*handler{r.start, r.on} {
		if h == nil {
			continue
		}
		found, err := e.pairsOf(h, m)
		if err == nil && h.kind == startHandler && len(found) == 0 {
			err = errors.New(strings.Join(append([]string{"none of " + strings.Join(h.by, ", ") + " has a value"}, h.doubts...), ": "))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("saga: %s: %s %s: event %v: %w", r.def.name, h.kind, h.label, r.event, err))
		}
		if h == r.start {
			pairs.born = distinct(found)
		}
		pairs.all = append(pairs.all, found...)
	}
	pairs.all = distinct(pairs.all)
	return pairs, errors.Join(errs...)
}

func distinct(pairs []pair) []pair { return without(pairs, nil) }

// without returns those of the pairs that are not in removed, each once.
func without(pairs, removed []pair) []pair {
	var out []pair
	seen := make(map[pair]bool, len(pairs)+len(removed))
	for _, p := range removed {
		seen[p] = true
	}
	for _, p := range pairs {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

func (e *Engine) pairsOf(h *handler, m Message) ([]pair, error) {
	var pairs []pair
	for _, path := range h.by {
		values, err := property.Values(m.Payload, path)
		if err != nil {
			return nil, err
		}
		if len(values) == 0 && m.Metadata[path] != "" {
			values = []string{m.Metadata[path]}
		}
		if h.kind == startHandler && len(values) > 1 {
			return nil, fmt.Errorf("property %q has %d values: a start wants one", path, len(values))
		}
		for _, value := range values {
			if err := e.checkValue(fmt.Sprintf("property %q", path), value); err != nil {
				return nil, err
			}
			pairs = append(pairs, pair{path, value})
		}
	}
	return pairs, nil
}
