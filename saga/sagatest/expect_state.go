package sagatest

import (
	"fmt"
	"slices"
	"strings"
)

// State is the saga's stored state, for expectations of one's own; the last one of a saga that has ended.
func (s *Scope[S]) State() S {
	s.stage.t.Helper()
	s.stage.expect()
	i := s.stage.seen.sagas[s.one()]
	var state S
	if err := s.stage.engine.Types().Decode(i.State, &state); err != nil {
		s.stage.t.Fatalf("sagatest: the state of %s: %v", i.Key, err)
	}
	return state
}

// ExpectState expects the saga's state, the last one of a saga that has ended. States are compared as they are stored.
func (s *Scope[S]) ExpectState(want S) {
	s.stage.t.Helper()
	s.stage.expect()
	i := s.stage.seen.sagas[s.one()]
	_, text, found := strings.Cut(s.stage.encoded(want), " ")
	if !found || text != string(i.State) {
		s.stage.fail(fmt.Sprintf("the state of %s is not the one expected", i.Key), beside(text, string(i.State))...)
	}
}

// ExpectOpen expects that the saga is live.
func (s *Scope[S]) ExpectOpen() {
	s.stage.t.Helper()
	s.life(false)
}

// ExpectEnded expects that the saga has ended.
func (s *Scope[S]) ExpectEnded() {
	s.stage.t.Helper()
	s.life(true)
}

func (s *Scope[S]) life(ended bool) {
	s.stage.t.Helper()
	s.stage.expect()
	words := map[bool]string{false: "open", true: "ended"}
	i := s.stage.seen.sagas[s.one()]
	if i.Ended != ended {
		s.stage.fail(fmt.Sprintf("%s is not %s", i.Key, words[ended]), beside(words[ended], words[i.Ended])...)
	}
}

// ExpectNone expects that no saga exists, not even one that has ended.
func (s *Scope[S]) ExpectNone() {
	s.stage.t.Helper()
	s.stage.expect()
	var got []string
	for _, key := range s.stage.seen.keys(s.stage.kit.sagaType) {
		if s.holds(key) {
			got = append(got, key.String())
		}
	}
	s.stage.compare("there is a saga", nil, got)
}

// ExpectAssociations expects that events find the saga by exactly these pairs. One that has ended is found by none.
func (s *Scope[S]) ExpectAssociations(want ...Association) {
	s.stage.t.Helper()
	s.stage.expect()
	key := s.one()
	s.stage.compare(fmt.Sprintf("the associations of %s are not those expected", key), sortedPairs(want), sortedPairs(s.stage.seen.associations[key]))
}

func sortedPairs(pairs []Association) []string {
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = p.String()
	}
	slices.Sort(texts)
	return texts
}
