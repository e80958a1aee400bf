package sagatest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
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
	var timers Timers
	timers = Timers{}
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

func TestRule0421TimeFiresDeadlinesInDueOrderEachAtItsTime(t *testing.T) {
	var at []time.Duration
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	fired := func(do func(Hands)) func(Hands) error {
		return func(h Hands) error {
			at = append(at, time.Since(start))
			do(h)
			return nil
		}
	}
	timers := Timers{
		"t": fired(func(h Hands) { h.Schedule("parcel", 15*time.Minute, deadline.WithPayload(Parcel{1})) }),
		"u": fired(func(h Hands) { h.Schedule("u", 30*time.Minute) }),
	}
	schedule := func(h Hands) error { h.Schedule("t", time.Hour); h.Schedule("u", 30*time.Minute); return nil }
	both(t, timers, func(f *sagatest.Fixture[Probe]) {
		at = nil
		f.Given(Begin{ID: "1", do: schedule})
		f.WhenTimePasses(30*time.Minute - time.Microsecond)
		f.ExpectNothing()
		f.WhenTimeAdvancesTo(start.Add(80 * time.Minute))
		f.ExpectDeadline(sagatest.At("u", start.Add(90*time.Minute)))
		require.Equal(f.T(), []time.Duration{30 * time.Minute, time.Hour, time.Hour}, at)
		require.Equal(f.T(), start.Add(80*time.Minute), f.Now().UTC())
		commands := f.State().Count
		require.Equal(f.T(), 4, commands)
		require.Equal(f.T(), 3, len(at))
	})
}

func TestRetriesComeAtTheirTimes(t *testing.T) {
	var at []time.Duration
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	timers := Timers{"t": func(Hands) error {
		at = append(at, time.Since(start))
		if len(at) < 3 {
			return errHandler
		}
		return nil
	}}
	both(t, timers, func(f *sagatest.Fixture[Probe]) {
		at = nil
		f.GivenState("1", Probe{})
		f.GivenDeadline("t", time.Hour)
		f.WhenTimePasses(2 * time.Hour)
		f.ExpectErrorIs(errHandler)
		f.ExpectCommands(Note{"t"})
		f.ExpectOnlyDeadlines()
		require.Equal(f.T(), []time.Duration{time.Hour, time.Hour + 5*time.Second, time.Hour + 15*time.Second}, at)
	})
}

func TestFailingWorkIsParked(t *testing.T) {
	broken := func(context.Context, Note) error { return errHandler }
	gone := func(context.Context, Order) error { return saga.Permanent(errHandler) }
	timers := Timers{"t": func(Hands) error { return saga.Permanent(errHandler) }, "u": refuse}
	both(t, timers, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Order{"x"}); h.Send(Note{"y"}); return nil }})
		f.GivenDeadline("t", time.Hour)
		f.GivenDeadline("u", time.Hour)
		f.WhenTimePasses(time.Hour)
		f.ExpectParked("t")
		f.ExpectDeadline(sagatest.After("t", 0)) // kept
		f.WhenTimePasses(72 * time.Hour)         // fifty attempts
		f.ExpectParked("u")
		f.WhenCommandsDelivered()
		f.ExpectParked("sagatest_test.Order")
		f.ExpectError("command sagatest_test.Note of probe/1")
	}, sagatest.CommandHandler(broken, gone))
	requireFails(t, "nothing of this name is parked", func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.ExpectParked("t")
	})
}

func TestRule0422RestartIsASecondEngineOnTheSameStore(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Schedule("t", time.Hour); h.Send(Note{"kept"}); return nil }})
		engine, db := f.Engine(), f.DB()
		f.WhenRestarted()
		f.ExpectNothing()
		require.NotSame(f.T(), engine, f.Engine())
		require.NotSame(f.T(), db, f.DB())
		require.Error(f.T(), db.Ping())
		require.Error(f.T(), engine.Handle(f.Context(), Move{ID: "1"}))
		f.WhenTimePasses(time.Hour)
		f.ExpectCommands(Note{"t"})
	})
}

func TestDueDeadlineFiresAfterADowntimeOnce(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Schedule("t", -time.Hour); return nil }})
		f.WhenRestarted()
		f.ExpectNothing()
		f.WhenTimePasses(0)
		f.ExpectCommands(Note{"t"})
		f.WhenTimePasses(time.Hour)
		f.ExpectNothing()
	})
}

func TestWhenDeadlineFiresItAndNoOther(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.GivenState("2", Probe{})
		for _, id := range []string{"1", "2"} {
			f.Saga(id).GivenDeadline("t", 0) // due, and not fired: no time has passed
			f.Saga(id).GivenDeadline("u", time.Hour)
		}
		f.Saga("2").WhenDeadline("u")
		f.ExpectCommands(Note{"u"})
		f.Saga("1").ExpectNothing()
		f.Saga("2").ExpectOnlyDeadlines(sagatest.After("t", 0))
	})
	requireFails(t, "is not pending", func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.WhenDeadline("t")
	})
}

func TestCommandsAreDeliveredByTheRelayInOrder(t *testing.T) {
	var delivered []string
	var again error
	handler := func(_ context.Context, n Note) error {
		delivered = append(delivered, n.Text)
		return again
	}
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		delivered, again = nil, nil
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); h.Send(Note{"b"}); return nil }})
		f.WhenCommandsDelivered()
		f.ExpectNoCommands() // none was sent
		require.Equal(f.T(), []string{"a", "b"}, delivered)

		again = errors.New("the bank is closed")
		f.When(Move{ID: "1", do: func(h Hands) error { h.Send(Note{"d"}); return nil }})
		f.WhenCommandsDelivered()
		f.ExpectError("the bank is closed")
		f.ExpectCommands(Note{"d"})
		again = nil
		f.WhenCommandsDelivered()
		require.Equal(f.T(), []string{"a", "b", "d"}, delivered) // not yet: it backs off
		f.WhenTimePasses(5 * time.Second)
		f.WhenCommandsDelivered()
		f.ExpectNoCommands()
		require.Equal(f.T(), []string{"a", "b", "d", "d"}, delivered)
	}, sagatest.CommandHandler(handler))
}

func TestCommandSentAndDeliveredInOneStepCounts(t *testing.T) {
	var f *sagatest.Fixture[Probe]
	answer := func(ctx context.Context, n Note) error {
		if n.Text == "answered" {
			return nil
		}
		return f.Engine().Handle(ctx, Move{ID: "1", do: func(h Hands) error { h.Send(Note{"answered"}); return nil }})
	}
	both(t, nil, func(fixture *sagatest.Fixture[Probe]) {
		f = fixture
		f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); return nil }})
		f.WhenCommandsDelivered()
		f.ExpectCommands(Note{"answered"})
	}, sagatest.CommandHandler(answer))
}

func TestDeliveryWithoutAnyHandlerStopsTheTest(t *testing.T) {
	requireFails(t, "register a sagatest.CommandHandler", func(f *sagatest.Fixture[Probe]) { f.WhenCommandsDelivered() })
}
