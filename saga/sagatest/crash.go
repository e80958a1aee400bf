package sagatest

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"
	"testing/synctest"
	"time"

	"github.com/norn-go/norn/saga/internal/knife"
)

// Crash proves that a scenario ends the same wherever its process dies. It runs scenario, a body as [Test] has it,
// undisturbed, where its expectations count, and then again and again, each time on empty tables: for every SQL
// statement of the steps (each Begin, Exec, Query and Commit) once with the process dying before the statement, once with
// it dying after, and once with only the statement's answer and connection lost. A dead process is followed by another one
// on the same store, and the interrupted step is done again: an event is handed over under the same id, due deadlines are
// swept, commands delivered.
//
// After every step the store must be that of the undisturbed run: states, associations, deadlines with their due times,
// commands in order, and the commands delivered so far, of which one that is delivered twice counts once. Versions and
// tokens may differ, and the ids of commands that deadlines sent. What lies outside norn's tables is compared where the
// scenario calls [Fixture.Observe]; the application's own tables are gone before each run, and for scenario to make.
//
// The framework clock stands still but in steps that let time pass, so that due times are equal to the microsecond. What
// a handler takes from time.Now differs between runs where it is retried: take times from events or from saga.Firing.
// Events get an id by their place; one given by saga.WithID wins. What the runs share and what remembers, a fake of
// another system, say, scenario has to clear when it begins.
//
// It logs what it tried, and stops after [Budget]. The first run that differs fails the test, with the statement that
// met its fault, and with what was expected beside what was found. regs are those of Test.
func Crash[S any](t *testing.T, sagaType string, scenario func(f *Fixture[S]), regs ...any) {
	t.Helper()
	k, err := register[S](sagaType, regs)
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range k.databases {
		t.Run(string(database), func(t *testing.T) {
			t.Helper()
			explore(t, k, newGround(t, database), scenario, func(run func(t testing.TB)) {
				t.Helper()
				synctest.Test(t, func(t *testing.T) {
					t.Helper()
					run(t)
				})
			})
		})
	}
}

// Budget bounds how long [Crash] explores one database, by the wall clock; the default is 30 seconds. Statements are
// tried in an order that spreads evenly, the same each time, so that what a small budget leaves out is no one part of the
// scenario.
func Budget(d time.Duration) Option {
	return func(k *kit) error {
		if d <= 0 {
			return fmt.Errorf("sagatest: Budget must be positive, got %v", d)
		}
		k.budget = d
		return nil
	}
}

const defaultBudget = 30 * time.Second

// modes are the faults that a statement meets, one in each run.
var modes = []mode{
	{"died before", knife.Fault{Die: true}},
	{"died after", knife.Fault{Die: true, After: true}},
	{"lost the answer of", knife.Fault{After: true}},
}

type mode struct {
	text  string
	fault knife.Fault
}

// exploration is what was tried so far.
type exploration struct {
	t          testing.TB
	begun      time.Time
	budget     time.Duration
	database   Database
	statements int // of the undisturbed run
	met        []int
	runs       int
	run        func(m mode, at int) *run
}

var errBudget = errors.New("out of budget")

func explore[S any](t testing.TB, k *kit, g *ground, scenario func(f *Fixture[S]), bubble func(run func(t testing.TB))) {
	t.Helper()
	var want *run
	e := &exploration{t: t, begun: time.Now(), budget: k.budget, database: g.database, met: make([]int, len(modes))}
	e.run = func(m mode, at int) *run {
		t.Helper()
		g.clear()
		r := newRun(k, g, m, at, want)
		bubble(func(t testing.TB) {
			t.Helper()
			playRun(t, r, scenario)
		})
		return r
	}
	want = e.run(mode{}, 0)
	e.statements = want.knife.Count()
	if want.failed || e.run(modes[0], 0).failed { // once more, to know whether the scenario is the same each time
		return
	}
	if e.statements == 0 {
		t.Error("sagatest: the scenario has no step that could crash")
		return
	}
	err := e.all()
	t.Log(e.report(k.sagaType, err))
	if e.runs == 0 {
		t.Errorf("sagatest: the budget of %v was over before anything was tried: give a longer one by sagatest.Budget", e.budget)
	}
}

// all tries every mode at every statement of the undisturbed run, and then goes on behind it until a run survives.
func (e *exploration) all() error {
	e.t.Helper()
	for _, at := range spread(e.statements) {
		if _, err := e.at(at); err != nil {
			return err
		}
	}
	for at := e.statements + 1; ; at++ {
		if met, err := e.at(at); err != nil || !met {
			return err
		}
	}
}

var errDiffers = errors.New("a run differed")

// at tries every mode at one statement, and tells whether there was one.
func (e *exploration) at(at int) (met bool, err error) {
	e.t.Helper()
	for i, m := range modes {
		if time.Since(e.begun) > e.budget {
			return met, errBudget
		}
		e.runs++
		r := e.run(m, at)
		if r.failed {
			return met, errDiffers
		}
		if r.statement != "" {
			met = true
			e.met[i]++
		}
	}
	return met, nil
}

func (e *exploration) report(sagaType string, err error) string {
	text := fmt.Sprintf("sagatest: %s on %s: %d statements", sagaType, e.database, e.statements)
	for i, m := range modes {
		text += fmt.Sprintf(", %s %d", m.text, e.met[i])
	}
	text += fmt.Sprintf("; %d runs in %v", e.runs, time.Since(e.begun).Round(time.Millisecond))
	if err != nil {
		text += ", then " + err.Error()
	}
	return text
}

// spread are the numbers from 1 to n, in an order of which every beginning is spread evenly.
func spread(n int) []int {
	width := bits.Len(uint(n))
	numbers := make([]int, 0, n)
	for i := range 1 << width {
		if at := int(bits.Reverse(uint(i)) >> (bits.UintSize - width)); at < n {
			numbers = append(numbers, at+1)
		}
	}
	return numbers
}
