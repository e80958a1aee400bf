package sagatest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

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
