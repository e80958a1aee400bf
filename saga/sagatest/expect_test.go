package sagatest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

func TestCommandsAreExpectedExactlyInOrder(t *testing.T) {
	send := func(h Hands) error {
		h.Send(Note{"a"}, saga.WithMetadata(saga.Metadata{"tenant": "blue"}))
		h.Send(Order{"b"})
		return nil
	}
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1", do: send})
		f.ExpectCommands(Note{"a"}, &Order{"b"})
		f.ExpectCommands(sagatest.WithMetadata(Note{"a"}, saga.Metadata{"tenant": "blue"}), sagatest.WithMetadata(Order{"b"}, nil))
		f.Saga("2").ExpectNoCommands()
	})
	for name, commands := range map[string][]any{
		"none":            {},
		"another order":   {Order{"b"}, Note{"a"}},
		"too few":         {Note{"a"}},
		"too many":        {Note{"a"}, Order{"b"}, Order{"b"}},
		"another type":    {Note{"a"}, Note{"b"}},
		"another value":   {Note{"b"}, Order{"b"}},
		"other metadata":  {sagatest.WithMetadata(Note{"a"}, saga.Metadata{"tenant": "red"}), Order{"b"}},
		"without any":     {sagatest.WithMetadata(Note{"a"}, nil), Order{"b"}},
		"with some":       {Note{"a"}, sagatest.WithMetadata(Order{"b"}, saga.Metadata{"tenant": "blue"})},
		"no command (fn)": {func() {}, Order{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			requireFails(t, "expected", func(f *sagatest.Fixture[Probe]) {
				f.When(Begin{ID: "1", do: send})
				f.ExpectCommands(commands...)
			})
		})
	}
}

func TestCommandsOfSagasMovedAtOnceStandInTheOrderOfTheirIDs(t *testing.T) {
	type tagged struct {
		ID  []string `json:"id"`
		Tag string   `json:"tag"`
	}
	regs := func(opts ...any) []any {
		return append(probe(nil, saga.On(func(p *Probe, _ tagged, c saga.Commands) {
			c.Send(Note{p.Text + "1"})
			c.Send(Note{p.Text + "2"})
		}, saga.By("tag"))), opts...)
	}
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		for _, id := range []string{"c", "a", "b"} {
			f.GivenState(id, Probe{Text: id}, sagatest.Association{Property: "tag", Value: "all"})
		}
		f.When(tagged{Tag: "all"})
		f.ExpectCommands(Note{"a1"}, Note{"a2"}, Note{"b1"}, Note{"b2"}, Note{"c1"}, Note{"c2"})
	}, regs(sagatest.OnBoth())...)
}

func TestStateIsWhatIsStored(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{Count: 7, Text: "given"})
		f.ExpectState(Probe{Count: 7, Text: "given"})
		f.ExpectOpen()
		f.ExpectAssociations(sagatest.Association{Property: "id", Value: "1"})
		f.When(Move{ID: "1", do: func(h Hands) error { h.State.Text = "moved"; h.Add("tag", "x"); return nil }})
		require.Equal(f.T(), Probe{Count: 8, Text: "moved"}, f.State())
		f.ExpectAssociations(sagatest.Association{Property: "tag", Value: "x"}, sagatest.Association{Property: "id", Value: "1"})
		f.When(Move{ID: "1", do: func(h Hands) error { h.End(); return nil }})
		f.ExpectEnded()
		f.ExpectState(Probe{Count: 9, Text: "moved"})
		f.ExpectAssociations()
	})
	for name, expect := range map[string]func(f *sagatest.Fixture[Probe]){
		"state":          func(f *sagatest.Fixture[Probe]) { f.ExpectState(Probe{Count: 6}) },
		"ended":          func(f *sagatest.Fixture[Probe]) { f.ExpectEnded() },
		"none":           func(f *sagatest.Fixture[Probe]) { f.ExpectNone() },
		"no association": func(f *sagatest.Fixture[Probe]) { f.ExpectAssociations() },
		"another association": func(f *sagatest.Fixture[Probe]) {
			f.ExpectAssociations(sagatest.Association{Property: "id", Value: "2"})
		},
		"error":        func(f *sagatest.Fixture[Probe]) { f.ExpectError("") },
		"error is":     func(f *sagatest.Fixture[Probe]) { f.ExpectErrorIs(errHandler) },
		"cancelled":    func(f *sagatest.Fixture[Probe]) { f.ExpectCancelled("t") },
		"another saga": func(f *sagatest.Fixture[Probe]) { f.Saga("2").ExpectOpen() },
	} {
		t.Run(name, func(t *testing.T) {
			requireFails(t, "sagatest: ", func(f *sagatest.Fixture[Probe]) {
				f.GivenState("1", Probe{Count: 7})
				f.ExpectOpen()
				expect(f)
			})
		})
	}
}

func TestGivenStateIsLiveAndMeetsItsEvents(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{Count: 7})
		f.When(Begin{ID: "1"}) // no second one
		f.ExpectNothing()
		f.When(Move{ID: "1", do: func(h Hands) error { h.End(); return nil }})
		f.ExpectState(Probe{Count: 8})
		f.ExpectEnded()
		f.When(Begin{ID: "1"}) // a tombstone
		f.ExpectNothing()
	})
}

func TestNothingMeansThatNoHandlerCommitted(t *testing.T) {
	both(t, Timers{"t": nil}, func(f *sagatest.Fixture[Probe]) {
		f.When(Move{ID: "1"})
		f.ExpectNothing()
		f.ExpectNone()
		f.Given(Begin{ID: "1"}, Begin{ID: "2"})
		f.When(Move{ID: "2"})
		f.Saga("1").ExpectNothing()
		f.WhenTimePasses(24 * time.Hour)
		f.ExpectNothing()
		f.When(Move{ID: "2"}, saga.WithID("e"))
		f.ExpectNoError()
		f.When(Move{ID: "2"}, saga.WithID("e"))
		f.ExpectNothing()
	})
	type idle struct {
		ID string `json:"id"`
	}
	for name, when := range map[string]func(f *sagatest.Fixture[Probe]){
		"a handler that changes nothing": func(f *sagatest.Fixture[Probe]) { f.When(idle{"1"}) },
		"an error":                       func(f *sagatest.Fixture[Probe]) { f.When(Move{ID: "1", do: refuse}) },
		"a deadline":                     func(f *sagatest.Fixture[Probe]) { f.WhenTimePasses(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			requireFails(t, "sagatest: ", func(f *sagatest.Fixture[Probe]) {
				f.GivenState("1", Probe{})
				f.GivenDeadline("t", time.Hour)
				when(f)
				f.ExpectNothing()
			}, probe(nil, saga.On(func(*Probe, idle) {}, saga.By("id")))...)
		})
	}
}

func TestNoErrorIsExpected(t *testing.T) {
	requireFails(t, "the act failed\n  expected  no error\n  actual    saga: handle", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1", do: refuse})
		f.ExpectNoError()
	})
}

func TestAnotherErrorIsNotTheOneExpected(t *testing.T) {
	requireFails(t, "an error with the bank", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1", do: refuse})
		f.ExpectError("the bank")
	})
}

func TestPanicOfAHandlerIsAnErrorOfTheAct(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1", do: func(Hands) error { panic("boom") }})
		f.ExpectError("boom")
		f.ExpectNone()
	})
}

func TestOneOfSeveralSagasMustBeNamed(t *testing.T) {
	given := func(f *sagatest.Fixture[Probe]) { f.Given(Begin{ID: "1"}, Begin{ID: "2"}) }
	for name, use := range map[string]func(f *sagatest.Fixture[Probe]){
		"state":    func(f *sagatest.Fixture[Probe]) { f.State() },
		"ended":    func(f *sagatest.Fixture[Probe]) { f.ExpectEnded() },
		"given":    func(f *sagatest.Fixture[Probe]) { f.GivenDeadline("t", 0) },
		"deadline": func(f *sagatest.Fixture[Probe]) { f.WhenDeadline("t") },
	} {
		t.Run(name, func(t *testing.T) {
			requireFails(t, "there are 2 sagas, [probe/1 probe/2]: say which one, by Saga(id)", func(f *sagatest.Fixture[Probe]) {
				given(f)
				use(f)
			})
			requireFails(t, "there is no probe yet", use)
			requireFails(t, "there is no saga probe/3", func(f *sagatest.Fixture[Probe]) {
				given(f)
				f.Saga("3").ExpectEnded()
			})
		})
	}
}

func TestWhatHappensBesideTheFixtureIsSeen(t *testing.T) {
	both(t, nil, func(f *sagatest.Fixture[Probe]) {
		f.ExpectNone()
		require.NoError(f.T(), f.Engine().Handle(f.Context(), Begin{ID: "1"}))
		f.ExpectState(Probe{Count: 1})
	})
}

func TestTimeDoesNotGoBackNorStandStillForADeadline(t *testing.T) {
	requireFails(t, "time cannot advance to 1999-12-31 23:59:59", func(f *sagatest.Fixture[Probe]) {
		f.WhenTimeAdvancesTo(time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC))
	})
	requireFails(t, "time cannot advance to 1999-12-31 23:00:00", func(f *sagatest.Fixture[Probe]) { f.WhenTimePasses(-time.Hour) })
	requireFails(t, "time cannot advance to 1999-12-31 23:00:00", func(f *sagatest.Fixture[Probe]) { f.GivenTimePasses(-time.Hour) })
	requireFails(t, "does a deadline arm itself for at once?", func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.GivenDeadline("t", time.Hour)
		f.WhenTimePasses(2 * time.Hour)
	}, probe(Timers{"t": func(h Hands) error { h.Schedule("t", 0); return nil }})...)
}
