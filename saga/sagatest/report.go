package sagatest

import (
	"fmt"
	"strings"
)

// fail reports a failed expectation with the history.
func (s *stage) fail(what string, lines ...string) {
	s.t.Helper()
	s.t.Errorf("sagatest: %s\n%s\n%s", what, strings.Join(lines, "\n"), s.history)
}

const nothing = "nothing"

// compare fails unless both lists are equal, item by item.
func (s *stage) compare(what string, want, got []string) {
	s.t.Helper()
	same := len(want) == len(got)
	var lines []string
	for i := range max(len(want), len(got)) {
		w, g := at(want, i), at(got, i)
		if w == g {
			lines = append(lines, fmt.Sprintf("  both      %s", w))
			continue
		}
		same = false
		lines = append(lines, beside(w, g)...)
	}
	if !same {
		s.fail(what, lines...)
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return nothing
}

func beside(want, got string) []string {
	return []string{"  expected  " + indented(want), "  actual    " + indented(got)}
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n            ") }
