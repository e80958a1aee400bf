package sagatest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

// effects are what changed in the store between two looks at it.
type effects struct {
	list      []effect  // for people, in a stable order
	commands  []command // stored, in order
	cancelled []deadline.Key
}

// effect is one change of one saga.
type effect struct {
	of   saga.Key
	text string
}

func (e *effects) add(of saga.Key, format string, args ...any) {
	e.list = append(e.list, effect{of, fmt.Sprintf(format, args...)})
}

// difference compares two snapshots, knowing which deadlines fired and which commands were delivered between them.
func difference(before, after snapshot, fired map[string]bool, delivered []outbox.Command) effects {
	var e effects
	e.firedDeadlines(before, fired)
	e.sagas(before, after)
	e.associations(before, after)
	e.deadlines(before, after, fired)
	e.newCommands(before, after, delivered)
	e.oldCommands(before, after, delivered)
	return e
}

func (e *effects) firedDeadlines(before snapshot, fired map[string]bool) {
	for _, key := range sortedDeadlines(before.deadlines) {
		if fired[before.deadlines[key].Token] {
			e.add(owner(key), "deadline %s of %s fired", key.Name, owner(key))
		}
	}
}

func (e *effects) sagas(before, after snapshot) {
	for _, key := range slices.SortedFunc(maps.Keys(after.sagas), compareKeys) {
		now, then := after.sagas[key], before.sagas[key]
		switch {
		case then.Version == now.Version:
		case then.Version == 0 || then.Ended && !now.Ended:
			e.add(key, "saga %s begins: %s", key, now.State)
		case string(then.State) != string(now.State):
			e.add(key, "saga %s becomes: %s", key, now.State)
		default:
			e.add(key, "saga %s keeps its state", key)
		}
		if now.Ended && then.Version != now.Version {
			e.add(key, "saga %s ends", key)
		}
	}
}

func (e *effects) associations(before, after snapshot) {
	all := maps.Clone(before.associations)
	maps.Copy(all, after.associations)
	for _, key := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		then, now := before.associations[key], after.associations[key]
		for _, a := range now {
			if !slices.Contains(then, a) {
				e.add(key, "association of %s: %s", key, a)
			}
		}
		for _, a := range then {
			if !slices.Contains(now, a) {
				e.add(key, "association of %s gone: %s", key, a)
			}
		}
	}
}

func (e *effects) deadlines(before, after snapshot, fired map[string]bool) {
	for _, key := range sortedDeadlines(before.deadlines) {
		then := before.deadlines[key]
		if _, pending := after.deadlines[key]; !pending && !fired[then.Token] {
			e.cancelled = append(e.cancelled, key)
			e.add(owner(key), "deadline %s of %s cancelled", key.Name, owner(key))
		}
	}
	for _, key := range sortedDeadlines(after.deadlines) {
		then, now := before.deadlines[key], after.deadlines[key]
		switch {
		case then.Token != now.Token:
			e.add(owner(key), "deadline of %s: %s", owner(key), pendingText(now))
		case !now.ParkedAt.IsZero() && then.ParkedAt.IsZero():
			e.add(owner(key), "deadline %s of %s parked after attempt %d", key.Name, owner(key), now.Attempts)
		case now.Attempts > then.Attempts:
			e.add(owner(key), "deadline %s of %s failed, tried again %s", key.Name, owner(key), stamp(now.NextAt.Time))
		}
	}
}

// newCommands are those stored since, among them those that were delivered before anybody looked.
func (e *effects) newCommands(before, after snapshot, delivered []outbox.Command) {
	var stored []command
	for id, c := range after.commands {
		if _, known := before.commands[id]; !known {
			stored = append(stored, c)
		}
	}
	slices.SortFunc(stored, inOrder)
	var gone []command
	for _, d := range delivered {
		_, known := before.commands[d.ID]
		if !known && !slices.ContainsFunc(gone, func(c command) bool { return c.ID == d.ID }) {
			gone = append(gone, deliveredCommand(d))
		}
	}
	e.commands = slices.Concat(gone, stored)
	for _, c := range e.commands {
		e.add(c.key(), "command of %s: %s", c.key(), c.text(true))
	}
}

func deliveredCommand(d outbox.Command) command {
	c := command{ID: d.ID, SagaType: d.SagaType, SagaID: d.SagaID, Type: d.Type, Payload: string(d.Payload)}
	if len(d.Metadata) > 0 {
		text := metadataText(d.Metadata)
		c.Metadata = &text
	}
	return c
}

func (e *effects) oldCommands(before, after snapshot, delivered []outbox.Command) {
	for _, d := range delivered {
		c := deliveredCommand(d)
		e.add(c.key(), "delivered for %s: %s", c.key(), c.text(true))
	}
	for _, now := range slices.SortedFunc(maps.Values(after.commands), inOrder) {
		then := before.commands[now.ID]
		switch {
		case !now.ParkedAt.IsZero() && then.ParkedAt.IsZero():
			e.add(now.key(), "command %s of %s parked after attempt %d", now.Type, now.key(), now.Attempts)
		case now.Attempts > then.Attempts:
			e.add(now.key(), "command %s of %s failed", now.Type, now.key())
		}
	}
}

func owner(k deadline.Key) saga.Key { return saga.Key{Type: k.Type, ID: k.ID} }

func sortedDeadlines(all map[deadline.Key]deadline.Pending) []deadline.Key {
	return slices.SortedFunc(maps.Keys(all), func(a, b deadline.Key) int {
		return cmp.Or(compareKeys(owner(a), owner(b)), cmp.Compare(a.Name, b.Name))
	})
}
