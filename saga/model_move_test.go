package saga_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/norn-go/norn/deadline"
)

// move is one call that a handler makes.
type move struct {
	Verb  verb
	Name  string // of the deadline or the tag
	After time.Duration
}

type verb string

const (
	schedules verb = "Schedule"
	cancels   verb = "Cancel"
	sends     verb = "Send"
	adds      verb = "Add"
	removes   verb = "Remove"
	ends      verb = "End"
	refuses   verb = "Fail"
	panics    verb = "Panic"
)

func (m move) String() string {
	switch m.Verb {
	case schedules:
		return fmt.Sprintf("%s(%q, %s)", m.Verb, m.Name, seconds(m.After))
	case cancels, adds, removes:
		return fmt.Sprintf("%s(%q)", m.Verb, m.Name)
	}
	return string(m.Verb) + "()"
}

// seconds is a duration as Go writes it.
func seconds(d time.Duration) string { return fmt.Sprintf("%d*time.Second", d/time.Second) }

// moves is what a handler does, in order.
type moves []move

func (ms moves) String() string {
	texts := make([]string, len(ms))
	for i, m := range ms {
		texts[i] = m.String()
	}
	return strings.Join(texts, "; ")
}

// fail reports whether the handler ends with an error or a panic.
func (ms moves) fail() bool {
	for _, m := range ms {
		if m.Verb == refuses || m.Verb == panics {
			return true
		}
	}
	return false
}

var errMove = errors.New("the handler fails")

// act makes the moves on a Story; commands and payloads bear the label.
func (ms moves) act(label string) Act {
	return func(sc Scene) error {
		for i, m := range ms {
			switch m.Verb {
			case schedules:
				sc.Schedule(m.Name, m.After, deadline.WithPayload(Parcel{Text: label}))
			case cancels:
				sc.Cancel(m.Name)
			case sends:
				sc.Send(Note{note(label, i)})
			case adds:
				sc.Add("tag", m.Name)
			case removes:
				sc.Remove("tag", m.Name)
			case ends:
				sc.End()
			case refuses:
				return errMove
			case panics:
				panic(errMove)
			}
		}
		return nil
	}
}

func note(label string, position int) string { return fmt.Sprintf("%s#%d", label, position) }
