package saga_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/norn-go/norn/retry"
)

// modelRetry is the policy of deadlines and commands in the model.
var modelRetry = retry.Policy{MaxAttempts: 3, Initial: time.Second, Max: time.Minute}

// model is what the engine is held against: sagas in memory, one thing after the other, nothing ever lost.
type model struct {
	now    time.Duration // since the beginning
	tokens int
	sagas  map[string]*modelSaga
	broken map[string]bool // deadlines whose handlers fail, by name, and sinks by saga
}

type modelSaga struct {
	version, count int
	ended          bool
	seen, tags     map[string]bool
	deadlines      map[string]modelDeadline
	waiting        []modelCommand
	delivered      []string
}

type modelDeadline struct {
	due, next time.Duration
	attempts  int
	parked    bool
	payload   string
	token     int
}

func newModel() *model { return &model{sagas: map[string]*modelSaga{}, broken: map[string]bool{}} }

// clone is a copy that shares nothing with m.
func (m *model) clone() *model {
	c := &model{now: m.now, tokens: m.tokens, sagas: map[string]*modelSaga{}, broken: maps.Clone(m.broken)}
	for id, s := range m.sagas {
		copied := *s
		copied.seen, copied.tags, copied.deadlines = maps.Clone(s.seen), maps.Clone(s.tags), maps.Clone(s.deadlines)
		copied.waiting, copied.delivered = slices.Clone(s.waiting), slices.Clone(s.delivered)
		c.sagas[id] = &copied
	}
	return c
}

// handle lets an event meet its sagas and reports whether a handler ran.
func (m *model) handle(h happening) (ran bool) {
	live := m.match(h)
	if len(live) == 0 && h.Kind != "Next" {
		return m.start(h)
	}
	for _, id := range live {
		if s := m.sagas[id]; h.Kind != "Again" && !s.seen[h.Event] {
			ran = true
			m.run(s, h)
		}
	}
	return ran
}

// match are the live sagas that hold an association of the event.
func (m *model) match(h happening) (live []string) {
	for id, s := range m.sagas {
		tagged := slices.ContainsFunc(h.Tags, func(tag string) bool { return s.tags[tag] })
		if !s.ended && (id == h.Saga || tagged) {
			live = append(live, id)
		}
	}
	return live
}

// start begins a life, the first one or, with Again, another one.
func (m *model) start(h happening) (ran bool) {
	s := m.sagas[h.Saga]
	if s != nil && (s.seen[h.Event] || h.Kind != "Again") {
		return false
	}
	if h.Moves.fail() {
		return true
	}
	if s == nil {
		s = &modelSaga{seen: map[string]bool{}, tags: map[string]bool{}, deadlines: map[string]modelDeadline{}}
		m.sagas[h.Saga] = s
	}
	s.ended, s.count = false, 0
	m.run(s, h)
	return true
}

// run is one handler: all of its moves, or none.
func (m *model) run(s *modelSaga, h happening) {
	if h.Moves.fail() {
		return
	}
	s.count++
	s.version++
	s.seen[h.Event] = true
	ended := false
	for i, mv := range h.Moves {
		switch mv.Verb {
		case schedules:
			m.schedule(s, mv.Name, mv.After, h.Event)
		case cancels:
			delete(s.deadlines, mv.Name)
		case sends:
			m.send(s, note(h.Event, i))
		case adds:
			s.tags[mv.Name] = true
		case removes:
			delete(s.tags, mv.Name)
		case ends:
			ended = true
		}
	}
	if ended {
		s.end()
	}
}

func (s *modelSaga) end() {
	s.ended = true
	clear(s.deadlines)
	clear(s.tags)
}

func (m *model) schedule(s *modelSaga, name string, after time.Duration, payload string) {
	m.tokens++
	due := m.now + after
	s.deadlines[name] = modelDeadline{due: due, next: due, payload: payload, token: m.tokens}
}

// selected is a deadline that a sweep found.
type selected struct {
	saga, name string
	next       time.Duration
	token      int
}

// due is what a sweep selects, in its order.
func (m *model) due() (found []selected) {
	for id, s := range m.sagas {
		for name, d := range s.deadlines {
			if !d.parked && d.next <= m.now {
				found = append(found, selected{id, name, d.next, d.token})
			}
		}
	}
	slices.SortFunc(found, func(a, b selected) int {
		return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(a.saga, b.saga), cmp.Compare(a.name, b.name))
	})
	return found
}

// sweep fires what is due.
func (m *model) sweep() {
	for _, w := range m.due() {
		m.fire(w)
	}
}

// fire claims a selected deadline, if it is still that one, and runs its handler.
func (m *model) fire(w selected) {
	s := m.sagas[w.saga]
	d, pending := s.deadlines[w.name]
	if !pending || d.parked || d.token != w.token {
		return
	}
	if m.broken[w.name] {
		d.attempts++
		pause, again := modelRetry.Next(d.attempts)
		d.next, d.parked = m.now+pause, !again
		s.deadlines[w.name] = d
		return
	}
	delete(s.deadlines, w.name)
	s.count++
	s.version++
	m.send(s, fired(w.name, s.count, d.payload))
	switch w.name {
	case "u":
		m.schedule(s, "u", repeat, "u")
	case "v":
		s.end()
	}
}

// repeat is after how long the deadline "u" fires again.
const repeat = 10 * time.Second

// fired is what a deadline's handler sends.
func fired(name string, count int, payload string) string {
	if name != "parcel" {
		payload = ""
	}
	return fmt.Sprintf("%s@%d%s", name, count, payload)
}

// retry makes the parked deadlines and commands of a saga due again.
func (m *model) retry(id string) {
	s := m.sagas[id]
	if s == nil {
		return
	}
	for name, d := range s.deadlines {
		if d.parked {
			d.parked, d.attempts, d.next = false, 0, m.now
			s.deadlines[name] = d
		}
	}
	for i := range s.waiting {
		if c := &s.waiting[i]; c.parked {
			c.parked, c.attempts, c.next = false, 0, c.created
		}
	}
}

// cancel and fireNow are what an operator does to one deadline.
func (m *model) cancel(id, name string) {
	if s := m.sagas[id]; s != nil {
		delete(s.deadlines, name)
	}
}

func (m *model) fireNow(id, name string) {
	s := m.sagas[id]
	if s == nil {
		return
	}
	if d, pending := s.deadlines[name]; pending && !d.parked {
		d.next = m.now
		s.deadlines[name] = d
	}
}
