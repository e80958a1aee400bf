package sagatest

import (
	"strings"
	"time"
)

// history is what happened in a test so far.
type history []moment

// moment is a step, or what became of one at a time.
type moment struct {
	at   time.Time
	what string   // empty: the step above goes on
	then []string // its effects
}

func (h history) String() string {
	if len(h) == 0 {
		return "history: nothing happened"
	}
	var text strings.Builder
	text.WriteString("history:")
	for _, m := range h {
		text.WriteString("\n  " + stamp(m.at))
		if m.what != "" {
			text.WriteString(" " + m.what)
		}
		for _, line := range m.then {
			text.WriteString("\n    " + strings.ReplaceAll(line, "\n", "\n    "))
		}
	}
	return text.String()
}

// begins notes a step.
func (h *history) begins(what string) { *h = append(*h, moment{at: time.Now(), what: what}) }

// goes notes effects of the last step.
func (h *history) goes(lines ...string) {
	if len(*h) == 0 {
		h.begins("beside the fixture")
	}
	last := &(*h)[len(*h)-1]
	switch now := time.Now(); {
	case last.at.Equal(now):
		last.then = append(last.then, lines...)
	default:
		*h = append(*h, moment{at: now, then: lines})
	}
}
