package sagatest

import (
	"errors"
	"strings"

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
	asked     bool // an expectation looked at the errors
}

func (a act) err() error { return errors.Join(a.errs...) }

// given runs a step that must succeed.
func (s *stage) given(what string, do func() error) {
	s.t.Helper()
	s.endAct()
	if err := s.step("given "+what, do); err != nil {
		s.t.Fatalf("sagatest: given %s: %v\n%s", what, err, s.history)
	}
	s.act = act{base: s.seen}
}

// when runs a step whose effects and error are for the expectations.
func (s *stage) when(what string, do func() error) {
	s.t.Helper()
	if !s.act.open {
		s.endAct()
		s.act = act{open: true, base: s.seen}
	}
	if err := s.step("when "+what, do); err != nil {
		s.act.errs = append(s.act.errs, err)
	}
}

func (s *stage) step(what string, do func() error) error {
	s.t.Helper()
	s.history.begins(what)
	err := do()
	err = errors.Join(err, s.settle())
	if err != nil {
		s.history.goes("error: " + firstLines(err))
	}
	return err
}

// firstLines is an error without the stacks of panics.
func firstLines(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\ngoroutine ")
	return text
}

// settle notes what changed since it was last called, and returns the errors of handlers that ran meanwhile.
func (s *stage) settle() error {
	s.t.Helper()
	fired, delivered, err := s.witness.take()
	now := s.look()
	e := difference(s.seen, now, fired, delivered)
	s.seen = now
	for _, effect := range e.list {
		s.history.goes(effect.text)
	}
	s.act.effects = append(s.act.effects, e.list...)
	s.act.commands = append(s.act.commands, e.commands...)
	s.act.cancelled = append(s.act.cancelled, e.cancelled...)
	return err
}

// expect begins an expectation: the act is over, and what happened beside the fixture meanwhile is taken in.
func (s *stage) expect() {
	s.t.Helper()
	s.act.open = false
	if err := s.settle(); err != nil {
		s.act.errs = append(s.act.errs, err)
	}
}

// endAct fails the test if the act left an error that nobody asked about.
func (s *stage) endAct() {
	s.t.Helper()
	s.act.open = false
	if err := s.act.err(); err != nil && !s.act.asked {
		s.act.asked = true
		s.fail("a when-step failed, and no expectation asked about it", "  "+strings.ReplaceAll(firstLines(err), "\n", "\n  "))
	}
}
