package sagatest

import (
	"cmp"
	"errors"
	"strings"

	"github.com/norn-go/norn/saga"
)

// ExpectError expects that the act failed, with a text that contains part: an event that was refused, or a handler of a
// deadline or of a command. What failed and succeeded later counts too. It is content with one such error, and asks about all
// of them; others want an expectation of their own. Errors are those of the whole act, also behind [Fixture.Saga].
func (s *Scope[S]) ExpectError(part string) {
	s.stage.t.Helper()
	s.failed("the act did not fail as expected", "an error with "+strings.TrimSpace(part), func(err error) bool {
		return strings.Contains(err.Error(), part)
	})
}

// ExpectErrorIs is [Scope.ExpectError] for an error that errors.Is finds. It sees what handlers of events, deadlines
// and commands returned.
func (s *Scope[S]) ExpectErrorIs(target error) {
	s.stage.t.Helper()
	if target == nil {
		s.stage.t.Fatal("sagatest: ExpectErrorIs(nil) expects nothing: use ExpectNoError")
	}
	s.failed("the act did not fail as expected", target.Error(), func(err error) bool { return errors.Is(err, target) })
}

func (s *Scope[S]) failed(what, want string, is func(error) bool) {
	s.stage.t.Helper()
	s.stage.expect()
	if !s.stage.act.ask(is) {
		s.stage.fail(what, beside(want, cmp.Or(texts(s.stage.act.errs), "no error"))...)
	}
}

// ExpectNoError expects that the act failed nowhere. Without it an error that no expectation asks about fails the test at
// the end of the act.
func (s *Scope[S]) ExpectNoError() {
	s.stage.t.Helper()
	s.stage.expect()
	s.stage.act.unasked = nil
	if len(s.stage.act.errs) > 0 {
		s.stage.fail("the act failed", beside("no error", texts(s.stage.act.errs))...)
	}
}

// ExpectParked expects that a deadline of this name, or a command whose type is stored under it, is parked. It asks about
// the act's errors as [Scope.ExpectError] does.
func (s *Scope[S]) ExpectParked(name string) {
	s.stage.t.Helper()
	s.stage.expect()
	s.stage.act.unasked = nil
	var parked []string
	for p, err := range s.stage.engine.Parked(s.stage.ctx(), saga.Query{Type: s.stage.kit.sagaType, ID: s.id}) {
		if err != nil {
			s.stage.t.Fatalf("sagatest: %v", err)
		}
		if p.Name == name {
			return
		}
		parked = append(parked, p.Name)
	}
	s.stage.fail("nothing of this name is parked", beside(name, cmp.Or(strings.Join(parked, ", "), nothing))...)
}

// ExpectNothing expects that the act did nothing at all: it failed nowhere, and no handler of a saga committed, not even
// one that changed nothing.
func (s *Scope[S]) ExpectNothing() {
	s.stage.t.Helper()
	s.ExpectNoError()
	var got []string
	for _, e := range s.stage.act.effects {
		if s.holds(e.of) {
			got = append(got, e.text)
		}
	}
	s.stage.compare("something happened", nil, got)
}
