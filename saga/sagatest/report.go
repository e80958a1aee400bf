package sagatest

import (
	"strings"
)

// fail reports a failed expectation with the history.
func (s *stage) fail(what string, lines ...string) {
	s.t.Helper()
	if s.run.disturbed() { // whose steps are compared with those of another run
		return
	}
	s.t.Errorf("sagatest: %s\n%s\n%s", what, strings.Join(lines, "\n"), s.history)
}

const nothing = "nothing"

// compare fails unless both lists are equal, item by item.
func (s *stage) compare(what string, want, got []string) {
	s.t.Helper()
	same := len(want) == len(got)
	var lines []string
	for i := range min(len(want), len(got)) {
		if want[i] == got[i] {
			lines = append(lines, "  both      "+indented(want[i]))
			continue
		}
		same = false
		lines = append(lines, beside(want[i], got[i])...)
	}
	for i := len(got); i < len(want); i++ {
		lines = append(lines, "  expected  "+indented(want[i]))
	}
	if len(got) < len(want) {
		lines = append(lines, "  actual    "+end(len(got)))
	}
	if len(want) < len(got) {
		lines = append(lines, "  expected  "+end(len(want)))
	}
	for i := len(want); i < len(got); i++ {
		lines = append(lines, "  actual    "+indented(got[i]))
	}
	if !same {
		s.fail(what, lines...)
	}
}

// end is what stands behind the last item of a list.
func end(length int) string {
	if length == 0 {
		return nothing
	}
	return "nothing more"
}

func beside(want, got string) []string {
	return []string{"  expected  " + indented(want), "  actual    " + indented(got)}
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n            ") }
