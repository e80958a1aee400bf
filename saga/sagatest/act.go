package sagatest

import (
	"slices"

	"github.com/norn-go/norn/deadline"
)

// act is what when-steps that follow each other did.
type act struct {
	open      bool     // the next when-step belongs to it
	base      snapshot // before it
	effects   []effect
	commands  []command
	cancelled []deadline.Key
	errs      []error
	unasked   []error // those of errs that no expectation asked about
}

// ask notes that an expectation asks about the errors that are as it wants, and tells whether there are any. If there are
// none it asked about all, for then it reports them.
func (a *act) ask(is func(error) bool) bool {
	if !slices.ContainsFunc(a.errs, is) {
		a.unasked = nil
		return false
	}
	a.unasked = slices.DeleteFunc(a.unasked, is)
	return true
}

// given runs a step that must succeed.
func (s *stage) given(what string, do func() error) {
	s.t.Helper()
	s.settle() // what happened beside the fixture counts to the step before
	s.endAct()
	if errs := s.step("given "+what, do); len(errs) > 0 {
		s.t.Fatalf("sagatest: given %s: %s\n%s", what, texts(errs), s.history)
	}
	s.act = act{base: s.seen}
}

// when runs a step whose effects and errors are for the expectations.
func (s *stage) when(what string, do func() error) {
	s.t.Helper()
	s.settle()
	if !s.act.open {
		s.endAct()
		s.act = act{open: true, base: s.seen}
	}
	errs := s.step("when "+what, do)
	s.act.errs, s.act.unasked = append(s.act.errs, errs...), append(s.act.unasked, errs...)
}

func (s *stage) step(what string, do func() error) []error {
	s.t.Helper()
	s.history.begins(what)
	var err error
	if s.run != nil {
		err = s.run.attempt(s, what, do)
	} else {
		err = do()
	}
	s.settle()
	errs := s.handlerErrs
	s.handlerErrs = nil
	if err != nil {
		s.history.goes("error: " + texts([]error{err}))
		errs = append(errs, err)
	}
	if s.run != nil {
		s.run.stepEnds(s, what, errs)
	}
	return errs
}

// settle notes what changed since it was last called, and what handlers that ran meanwhile returned.
func (s *stage) settle() {
	s.t.Helper()
	fired, delivered, errs := s.witness.take()
	now := s.look()
	if s.run != nil {
		fired, delivered = s.run.taken(s.seen, now, fired, delivered)
	}
	e := difference(s.seen, now, fired, delivered)
	s.seen = now
	for _, effect := range e.list {
		s.history.goes(effect.text)
	}
	for _, err := range errs {
		s.history.goes("error: " + texts([]error{err}))
	}
	s.handlerErrs = append(s.handlerErrs, errs...)
	s.act.effects = append(s.act.effects, e.list...)
	s.act.commands = append(s.act.commands, e.commands...)
	s.act.cancelled = append(s.act.cancelled, e.cancelled...)
}

// expect begins an expectation: the act is over, and what happened beside the fixture meanwhile is taken in.
func (s *stage) expect() {
	s.t.Helper()
	s.act.open = false
	s.settle()
}

// endAct fails the test if the act left an error that nobody asked about.
func (s *stage) endAct() {
	s.t.Helper()
	s.act.open = false
	if unasked := s.act.unasked; len(unasked) > 0 {
		s.act.unasked = nil
		s.fail("a when-step failed, and no expectation asked about it", "  error     "+indented(texts(unasked)))
	}
}
