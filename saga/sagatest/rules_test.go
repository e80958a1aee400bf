package sagatest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga/sagatest"
)

func TestRule0417FixtureRunsTheEngineOnRealTables(t *testing.T) {
	var dialects []string
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		dialects = append(dialects, f.DB().Dialect())
		f.When(Begin{ID: "1", do: func(h Hands) error { h.Schedule("t", time.Hour); h.Send(Note{"a"}); return nil }})
		for _, table := range []string{"{instance}", "{association}", "{deadline}", "{command}", "{event}"} {
			var rows int
			require.NoError(f.T(), f.DB().Get(f.Context(), &rows, "SELECT count(*) FROM "+table))
			require.Equal(f.T(), 1, rows, table)
		}
	})
	require.Equal(t, []string{"sqlite", "postgres", "sqlite", "postgres"}, dialects)
}

func TestRule0418ErrorInGivenAborts(t *testing.T) {
	for name, step := range map[string]func(f *sagatest.Fixture[Probe]){
		"event":              func(f *sagatest.Fixture[Probe]) { f.Given(Begin{ID: "2", do: refuse}) },
		"time":               func(f *sagatest.Fixture[Probe]) { f.GivenTimePasses(time.Hour) },
		"second state":       func(f *sagatest.Fixture[Probe]) { f.GivenState("1", Probe{}) },
		"unknown deadline":   func(f *sagatest.Fixture[Probe]) { f.GivenDeadline("nobody's", time.Hour) },
		"impossible payload": func(f *sagatest.Fixture[Probe]) { f.GivenDeadline("t", 0, deadline.WithPayload(func() {})) },
	} {
		t.Run(name, func(t *testing.T) {
			recorded(t, func(t *testing.T, r *recorder) {
				require.True(t, r.stopped)
				require.Len(t, r.failures, 1)
				require.Contains(t, r.text(), "sagatest: given ")
			}, func(f *sagatest.Fixture[Probe]) {
				f.GivenState("1", Probe{})
				f.GivenDeadline("t", time.Hour)
				step(f)
				require.Fail(t, "the test went on")
			}, probe(Timers{"t": refuse})...)
		})
	}
}

func TestRule0418ErrorInWhenIsKeptForThen(t *testing.T) {
	both(t, Timers{"t": refuse}, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Schedule("t", time.Hour); return nil }})
		f.When(Move{ID: "1", do: func(h Hands) error { h.Send(Note{"lost"}); h.State.Text = "lost"; return errHandler }})
		f.ExpectErrorIs(errHandler)
		f.ExpectError("probe/1: the handler refuses")
		f.ExpectNoCommands()
		f.ExpectState(Probe{Count: 1})
		f.WhenTimePasses(time.Hour)
		f.ExpectErrorIs(errHandler)
		f.When(Move{ID: "1"})
		f.ExpectNoError()
	})
}

func TestErrorThatNobodyAsksAboutFails(t *testing.T) {
	for name, then := range map[string]func(f *sagatest.Fixture[Probe]){
		"at the end":       func(*sagatest.Fixture[Probe]) {},
		"at the next when": func(f *sagatest.Fixture[Probe]) { f.ExpectNoCommands(); f.When(Begin{ID: "2"}); f.ExpectNoError() },
		"at a given":       func(f *sagatest.Fixture[Probe]) { f.Given(Begin{ID: "2"}); f.ExpectNoError() },
	} {
		t.Run(name, func(t *testing.T) {
			requireFails(t, "no expectation asked about it", func(f *sagatest.Fixture[Probe]) {
				f.When(Begin{ID: "1", do: refuse})
				then(f)
			})
		})
	}
}

func TestEachErrorOfAnActIsAskedAbout(t *testing.T) {
	twice := func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1"})
		f.When(Move{ID: "1", do: refuse})
		f.When(Move{ID: "1", do: func(Hands) error { return errors.New("another") }})
		f.ExpectErrorIs(errHandler)
	}
	requireFails(t, "no expectation asked about it\n  error     saga: handle sagatest_test.Move: probe/1: another", twice)
	requireFails(t, "use ExpectNoError", func(f *sagatest.Fixture[Probe]) { f.ExpectErrorIs(nil) })
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		twice(f)
		f.ExpectError("another")
	})
}

func TestWhatHappensBesideTheFixtureCountsToTheStepBefore(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1"})
		require.NoError(f.T(), f.Engine().Handle(f.Context(), Move{ID: "1", do: func(h Hands) error { h.Send(Note{"beside"}); return nil }}))
		f.When(Move{ID: "1"})
		f.ExpectNoCommands()
	})
}

func TestRule0418OnlyTheEffectsOfWhenAreNew(t *testing.T) {
	send := func(text string) func(Hands) error {
		return func(h Hands) error { h.Send(Note{text}); h.Schedule("t", time.Hour); return nil }
	}
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: send("given")})
		f.ExpectNoCommands()
		f.ExpectOnlyNewDeadlines()
		f.When(Move{ID: "1", do: send("first")})
		f.When(Move{ID: "1", do: send("second")})
		f.ExpectCommands(Note{"first"}, Note{"second"}) // steps that follow each other are one act
		f.ExpectOnlyNewDeadlines(sagatest.After("t", time.Hour))
		f.When(Move{ID: "1", do: send("third")})
		f.ExpectCommands(Note{"third"})
		f.When(Move{ID: "1"})
		f.ExpectOnlyNewDeadlines()
		f.ExpectOnlyDeadlines(sagatest.After("t", time.Hour))
		f.Given(Move{ID: "1", do: send("given again")})
		f.ExpectNoCommands()
	})
}

func TestRule0419OnlyComparesThePendingSet(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: func(h Hands) error {
			h.Schedule("u", 2*time.Hour, deadline.WithPublicID("mine"))
			return nil
		}})
		f.When(Move{ID: "1", do: func(h Hands) error {
			h.Schedule("parcel", time.Hour, deadline.WithPayload(Parcel{7}))
			return nil
		}})
		f.ExpectOnlyDeadlines(sagatest.After("u", 2*time.Hour), sagatest.After("parcel", time.Hour, deadline.WithPayload(Parcel{7})))
		f.ExpectOnlyDeadlines(
			sagatest.At("parcel", f.Now().Add(time.Hour), deadline.WithPayload(Parcel{7})),
			sagatest.After("u", 2*time.Hour, deadline.WithPublicID("mine")))
		f.ExpectOnlyNewDeadlines(sagatest.After("parcel", time.Hour, deadline.WithPayload(Parcel{7})))
		f.ExpectDeadline(sagatest.After("u", 2*time.Hour))
		f.ExpectDeadlineNotBefore(sagatest.After("u", time.Hour))
	})
	given := func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.GivenDeadline("u", time.Hour, deadline.WithPublicID("mine"))
		f.When(Move{ID: "1", do: func(h Hands) error { h.Schedule("parcel", time.Hour, deadline.WithPayload(Parcel{7})); return nil }})
	}
	parcel := func(weight int) sagatest.Deadline {
		return sagatest.After("parcel", time.Hour, deadline.WithPayload(Parcel{weight}))
	}
	u := sagatest.After("u", time.Hour)
	for name, expect := range map[string]func(f *sagatest.Fixture[Probe]){
		"none":            func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyDeadlines() },
		"one too few":     func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyDeadlines(parcel(7)) },
		"one too many":    func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyDeadlines(parcel(7), u, sagatest.After("t", time.Hour)) },
		"twice":           func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyDeadlines(parcel(7), u, u) },
		"another payload": func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyDeadlines(parcel(8), u) },
		"no payload":      func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyDeadlines(sagatest.After("parcel", time.Hour), u) },
		"another type": func(f *sagatest.Fixture[Probe]) {
			f.ExpectDeadline(sagatest.After("parcel", time.Hour, deadline.WithPayload(struct{ Weight int }{7})))
		},
		"a microsecond later": func(f *sagatest.Fixture[Probe]) { f.ExpectDeadline(sagatest.After("u", time.Hour+time.Microsecond)) },
		"due before": func(f *sagatest.Fixture[Probe]) {
			f.ExpectDeadlineNotBefore(sagatest.After("u", time.Hour+time.Microsecond))
		},
		"another public id": func(f *sagatest.Fixture[Probe]) {
			f.ExpectDeadline(sagatest.After("u", time.Hour, deadline.WithPublicID("yours")))
		},
		"the old one as new":   func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyNewDeadlines(u, parcel(7)) },
		"the new one left out": func(f *sagatest.Fixture[Probe]) { f.ExpectOnlyNewDeadlines() },
	} {
		t.Run(name, func(t *testing.T) {
			requireFails(t, "deadline", func(f *sagatest.Fixture[Probe]) {
				given(f)
				expect(f)
			})
		})
	}
}

func TestCase0227OldDeadlineFailsOnlyDeadlinesAndNotOnlyNewOnes(t *testing.T) {
	given := func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "old", do: func(h Hands) error { h.Schedule("t", time.Hour); return nil }})
		f.When(Begin{ID: "new", do: func(h Hands) error { h.Schedule("u", time.Hour); return nil }})
	}
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		given(f)
		f.ExpectOnlyNewDeadlines(sagatest.After("u", time.Hour))
	})
	requireFails(t, "the pending deadlines are not those expected", func(f *sagatest.Fixture[Probe]) {
		given(f)
		f.ExpectOnlyDeadlines(sagatest.After("u", time.Hour))
	})
}

func TestRule0420CancellationsAreAssertedByName(t *testing.T) {
	schedule := func(h Hands) error { h.Schedule("t", time.Hour); h.Schedule("u", 2*time.Hour); return nil }
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: schedule})
		f.When(Move{ID: "1", do: func(h Hands) error { h.Cancel("u"); h.Cancel("parcel"); h.Schedule("t", 3*time.Hour); return nil }})
		f.ExpectCancelled("u") // not the one that was replaced, nor the one that was not pending
		f.When(Move{ID: "1", do: schedule})
		f.WhenTimePasses(time.Hour)
		f.ExpectCancelled() // it fired
		f.When(Move{ID: "1", do: func(h Hands) error { h.End(); return nil }})
		f.ExpectCancelled("u")
	})
	requireFails(t, "the cancelled deadlines are not those expected", func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: schedule})
		f.WhenTimePasses(time.Hour)
		f.ExpectCancelled("t")
	})
}

func TestRule0420DeadlineCancelledInTheSweepThatFoundItDueIsCancelled(t *testing.T) {
	other := map[string]string{"t": "u", "u": "t"}
	timers := Timers{}
	for name, cancelled := range other {
		timers[name] = func(h Hands) error { h.Cancel(cancelled); h.State.Text = cancelled; return nil }
	}
	both(t, timers, func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.GivenDeadline("t", time.Hour)
		f.GivenDeadline("u", time.Hour)
		f.WhenTimePasses(time.Hour)
		cancelled := f.State().Text
		f.ExpectCancelled(cancelled)
		f.ExpectCommands(Note{other[cancelled]})
	})
}
