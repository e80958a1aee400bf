package sagatest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
)

// errorKey is what an outcome tells a step's error under. A step that had one may have another or, done again, none.
const errorKey = "error of the step"

// outcome is what a step of a scenario came to, by what it is about: what every run must find the same.
type outcome struct {
	step string
	is   map[string]string
}

// outcome describes what is stored and delivered after a step.
func (r *run) outcome(step string, shot snapshot, errs []error) outcome {
	is := map[string]string{}
	for key, i := range shot.sagas {
		life := "open"
		if i.Ended {
			life = "ended"
		}
		is["saga "+key.String()] = life + " " + string(i.State)
	}
	for key, pairs := range shot.associations {
		is["associations of "+key.String()] = fmt.Sprint(pairs)
	}
	for key, d := range shot.deadlines {
		text := fmt.Sprintf("%s, public id %s, attempts %d, next %s", pendingText(d), d.PublicID, d.Attempts, stamp(d.NextAt.Time))
		if !d.ParkedAt.IsZero() {
			text += ", parked"
		}
		is[fmt.Sprintf("deadline %s of %s", key.Name, owner(key))] = text
	}
	r.addCommands(is, shot)
	if len(errs) > 0 {
		is[errorKey] = texts(errs)
	}
	return outcome{step, is}
}

func (r *run) addCommands(is map[string]string, shot snapshot) {
	for id := range shot.commands {
		r.stored(id)
	}
	places := map[saga.Key]int{}
	for _, d := range r.arrived {
		r.stored(d.ID)
		c := deliveredCommand(d)
		places[c.key()]++
		is[fmt.Sprintf("command %d of %s", places[c.key()], c.key())] = "delivered: " + r.commandText(c)
	}
	for _, c := range slices.SortedFunc(maps.Values(shot.commands), inOrder) {
		if slices.ContainsFunc(r.arrived, func(d outbox.Command) bool { return d.ID == c.ID }) {
			is["delivered and still stored, of "+c.key().String()] = r.commandText(c)
			continue
		}
		places[c.key()]++
		text := fmt.Sprintf("%s, attempts %d", r.commandText(c), c.Attempts)
		if !c.ParkedAt.IsZero() {
			text += ", parked"
		}
		is[fmt.Sprintf("command %d of %s", places[c.key()], c.key())] = text
	}
}

// stored notes which commands were first seen after an event.
func (r *run) stored(id string) {
	if _, known := r.fromEvent[id]; !known {
		r.fromEvent[id] = r.event
	}
}

// commandText is a command, with its id if that must be the same in every run.
func (r *run) commandText(c command) string {
	text := c.text(true)
	if r.fromEvent[c.ID] {
		text += ", id " + c.ID
	}
	return text
}

// observation is a value as it stands in failures.
func observation(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%+v", value)
	}
	return string(text)
}

// differences are the lines in which two outcomes differ, expected beside actual.
func differences(want, got outcome) (lines []string) {
	all := maps.Clone(want.is)
	maps.Copy(all, got.is)
	for _, about := range slices.Sorted(maps.Keys(all)) {
		expected, there := want.is[about]
		actual, here := got.is[about]
		if expected == actual || about == errorKey && there {
			continue
		}
		lines = append(lines, "  "+about)
		lines = append(lines, beside(orNothing(expected, there), orNothing(actual, here))...)
	}
	return lines
}

func orNothing(text string, there bool) string {
	if !there {
		return nothing
	}
	return text
}
