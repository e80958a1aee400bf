package saga_test

import (
	"slices"
	"time"
)

// modelCommand is a command that waits for its delivery.
type modelCommand struct {
	text          string
	created, next time.Duration
	attempts      int
	parked        bool
}

func (m *model) send(s *modelSaga, text string) {
	s.waiting = append(s.waiting, modelCommand{text: text, created: m.now, next: m.now})
}

// deliver relays what is due, per saga in order; one that fails holds back the later ones until it is parked.
func (m *model) deliver() {
	for id, s := range m.sagas {
		for {
			first := slices.IndexFunc(s.waiting, func(c modelCommand) bool { return !c.parked })
			if first < 0 || s.waiting[first].next > m.now {
				break
			}
			if m.broken["sink "+id] {
				m.undelivered(s, first)
				continue
			}
			s.delivered = append(s.delivered, s.waiting[first].text)
			s.waiting = slices.Delete(s.waiting, first, first+1)
		}
	}
}

func (m *model) undelivered(s *modelSaga, first int) {
	c := &s.waiting[first]
	c.attempts++
	pause, again := modelRetry.Next(c.attempts)
	c.next, c.parked = m.now+pause, !again
	if c.parked {
		return
	}
	for i := first + 1; i < len(s.waiting); i++ {
		if later := &s.waiting[i]; !later.parked && later.next < c.next {
			later.next = c.next
		}
	}
}
