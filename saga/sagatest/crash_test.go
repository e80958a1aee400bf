package sagatest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// trial is a test that keeps its failures and logs to itself.
type trial struct {
	recorder
	logs []string
}

func (r *trial) Failed() bool    { return len(r.failures) > 0 }
func (r *trial) Log(args ...any) { r.logs = append(r.logs, fmt.Sprint(args...)) }

// tried explores a scenario that may fail, and hands out what was said.
func tried[S any](t *testing.T, sagaType string, scenario func(f *sagatest.Fixture[S]), regs ...any) *trial {
	t.Helper()
	outer := &trial{recorder: recorder{TB: t}}
	sagatest.Explore(outer, func(run func(t testing.TB)) {
		synctest.Test(t, func(t *testing.T) {
			inner := &trial{recorder: recorder{TB: t}}
			done := make(chan struct{})
			go func() {
				defer close(done)
				run(inner)
			}()
			<-done
			outer.failures = append(outer.failures, inner.failures...)
		})
	}, sagaType, scenario, regs...)
	return outer
}

func TestEveryKindOfStepIsDoneAgainAfterACrash(t *testing.T) {
	timers := Timers{"u": refuse}
	var delivered []string
	for name, more := range map[string][]any{"handle": nil, "synchronous": {sagatest.Synchronous()}} {
		t.Run(name, func(t *testing.T) {
			sagatest.Crash(t, "probe", func(f *sagatest.Fixture[Probe]) {
				delivered = nil
				f.GivenState("1", Probe{Text: "given"})
				f.Saga("1").GivenDeadline("t", time.Hour)
				f.When(Begin{ID: "2", do: func(h Hands) error {
					h.Send(Note{"a"})
					h.Send(Note{"b"})
					h.Add("tag", "x")
					h.Schedule("u", time.Hour-time.Second)
					h.Schedule("parcel", 2*time.Hour, deadline.WithPayload(Parcel{7}))
					return nil
				}})
				f.When(Move{ID: "1", do: refuse})
				f.ExpectErrorIs(errHandler)
				f.WhenCommandsDelivered()
				f.WhenRestarted()
				f.WhenTimePasses(time.Hour)
				f.ExpectErrorIs(errHandler)
				f.Saga("2").WhenDeadline("parcel")
				f.ExpectCommands(Note{"parcel of 7"})
				f.Observe("notes", slices.Compact(slices.Clone(delivered)))
			}, probe(timers, append(more, sagatest.CommandHandler(deliver(&delivered)))...)...)
		})
	}
}

// Tab is a saga whose handlers write into a ledger.
type Tab struct{ Paid int }

// Register is a place outside the saga's transaction.
type Register interface {
	Write(ctx context.Context, line string) error
}

type Paid struct {
	ID string `json:"id"`
}

func (s *Tab) OnPaid(ctx context.Context, _ Paid, ledger Register) error {
	s.Paid++
	return ledger.Write(ctx, "paid")
}

// table is a ledger in an application's table.
type table struct{ db *schema.DB }

func (l table) Write(ctx context.Context, line string) error {
	_, err := l.db.Exec(ctx, "INSERT INTO ledger (line) VALUES (?)", line)
	return err
}

func (l table) open(t testing.TB) {
	_, err := l.db.Exec(t.Context(), "CREATE TABLE ledger (line text)")
	require.NoError(t, err)
}

func (l table) lines(t testing.TB) (n int) {
	require.NoError(t, l.db.Get(t.Context(), &n, "SELECT count(*) FROM ledger"))
	return n
}

var tab = saga.Start((*Tab).OnPaid, saga.By("id"))

func TestWriteBesideTheTransactionIsFoundOnPostgres(t *testing.T) {
	r := tried(t, "tab", func(f *sagatest.Fixture[Tab]) {
		table{f.DB()}.open(f.T())
		f.When(Paid{"1"})
		f.Observe("lines in the ledger", table{f.DB()}.lines(f.T()))
	}, tab, sagatest.On(sagatest.Postgres), sagatest.Provide(func(db *schema.DB) Register { return table{db} }))
	requireFound(t, r)
}

func TestWriteIntoASecondFileIsFoundOnSQLite(t *testing.T) {
	second := table{schematest.Connect(t, schematest.URL(t, "sqlite"), schema.WithoutPrepare())}
	second.open(t)
	r := tried(t, "tab", func(f *sagatest.Fixture[Tab]) {
		_, err := second.db.Exec(f.Context(), "DELETE FROM ledger")
		require.NoError(f.T(), err)
		f.When(Paid{"1"})
		f.Observe("lines in the ledger", second.lines(f.T()))
	}, tab, sagatest.Provide(second))
	requireFound(t, r)
}

// requireFound wants a ledger that was written twice, told readably.
func requireFound(t *testing.T, r *trial) {
	t.Helper()
	require.Len(t, r.failures, 1)
	for _, part := range []string{
		"sagatest: a run that ", "\n  statement ", `of step   when sagatest_test.Paid {"id":"1"}`,
		"differs from the undisturbed one after observe lines in the ledger:\n  lines in the ledger\n  expected  1\n  actual    2\n",
		"another process begins, and the step again",
	} {
		require.Contains(t, r.text(), part)
	}
	require.Contains(t, r.logs[0], "a run differed")
}

func TestWriteInTheTransactionHappensOnce(t *testing.T) {
	paid := saga.Start(func(s *Tab, _ Paid, ctx context.Context, tx saga.Tx) error {
		s.Paid++
		_, err := tx.ExecContext(ctx, "INSERT INTO ledger (line) VALUES ('paid')")
		return err
	}, saga.By("id"))
	sagatest.Crash(t, "tab", func(f *sagatest.Fixture[Tab]) {
		table{f.DB()}.open(f.T())
		f.When(Paid{"1"})
		f.Observe("lines in the ledger", table{f.DB()}.lines(f.T()))
	}, paid, sagatest.OnBoth())
}

func TestCommandHandlerThatCountsDeliveriesIsFound(t *testing.T) {
	var books, ids []string
	scenario := func(into *[]string) func(f *sagatest.Fixture[Probe]) {
		return func(f *sagatest.Fixture[Probe]) {
			books, ids = nil, nil
			f.Given(Begin{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); return nil }})
			f.WhenCommandsDelivered()
			f.Observe("books", *into)
		}
	}
	book := sagatest.CommandHandler(func(ctx context.Context, n Note) error {
		books = append(books, n.Text)
		if id := outbox.DeliveryFrom(ctx).ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return nil
	})
	r := tried(t, "probe", scenario(&books), probe(nil, book)...)
	require.Contains(t, r.text(), "  books\n  expected  [\"a\"]\n  actual    [\"a\",\"a\"]\n")
	require.Contains(t, r.text(), "of step   when commands are delivered")

	require.Empty(t, tried(t, "probe", scenario(&ids), probe(nil, book)...).text())
}

func TestExpectationsCountInTheUndisturbedRunAlone(t *testing.T) {
	runs := 0
	r := tried(t, "probe", func(f *sagatest.Fixture[Probe]) {
		runs++
		f.When(Begin{ID: "1"})
		f.ExpectEnded()
	}, probe(nil)...)
	require.Equal(t, 1, runs)
	require.Len(t, r.failures, 1)
	require.Empty(t, r.logs)
}

func TestScenarioThatIsNotTheSameEachTimeIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		part     string
		scenario func(f *sagatest.Fixture[Probe], run int)
	}{
		"other state": {"nothing had gone wrong in it", func(f *sagatest.Fixture[Probe], run int) {
			f.When(Begin{ID: "1", do: func(h Hands) error { h.State.Text = fmt.Sprint(run); return nil }})
			f.When(Move{ID: "1"})
		}},
		"other step": {"has other steps than the undisturbed one", func(f *sagatest.Fixture[Probe], run int) {
			f.When(Begin{ID: fmt.Sprint(run)})
		}},
		"more steps": {"has more steps than the undisturbed one", func(f *sagatest.Fixture[Probe], run int) {
			for range run {
				f.When(Begin{ID: "1"})
			}
		}},
		"fewer steps": {"has fewer steps than the undisturbed one", func(f *sagatest.Fixture[Probe], run int) {
			for range 3 - run {
				f.When(Begin{ID: "1"})
			}
		}},
		"its own requirement": {"sagatest: that was in a run that died before statement 1 of ", func(f *sagatest.Fixture[Probe], run int) {
			f.When(Begin{ID: "1"})
			require.Less(f.T(), run, 3)
		}},
		"a requirement that remembers": {"sagatest: that was in a run that was as undisturbed as the first", func(f *sagatest.Fixture[Probe], run int) {
			require.Equal(f.T(), 1, run)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			run := 0
			r := tried(t, "probe", func(f *sagatest.Fixture[Probe]) {
				run++
				c.scenario(f, run)
			}, probe(nil)...)
			require.Contains(t, r.text(), c.part)
		})
	}
}

func TestScenarioThatTriesNothingFails(t *testing.T) {
	for part, scenario := range map[string]func(f *sagatest.Fixture[Probe]){
		"the scenario has no step that could crash": func(*sagatest.Fixture[Probe]) {},
		"the scenario was left before its end": func(f *sagatest.Fixture[Probe]) {
			f.When(Begin{ID: "1"})
			runtime.Goexit() // as testing.T.SkipNow does
		},
	} {
		require.Contains(t, tried(t, "probe", scenario, probe(nil)...).text(), part)
	}
}

func TestExplorationWithoutTimeToTryAnythingFails(t *testing.T) {
	r := tried(t, "probe", func(f *sagatest.Fixture[Probe]) { f.When(Begin{ID: "1"}) }, probe(nil, sagatest.Budget(1))...)
	require.Contains(t, r.text(), "sagatest: the budget of 1ns was over before anything was tried")
	require.Contains(t, r.logs[0], "died before 0, died after 0, lost the answer of 0; 0 runs in ")
	require.True(t, strings.HasSuffix(r.logs[0], ", then out of budget"), r.logs[0])
	requireFails(t, "sagatest: Budget must be positive, got 0s", func(*sagatest.Fixture[Probe]) {}, probe(nil, sagatest.Budget(0))...)
}

func TestStatementsAreTriedSpreadEvenly(t *testing.T) {
	require.Equal(t, []int{1, 5, 3, 7, 2, 6, 4}, sagatest.Spread(7))
	for n := range 70 {
		all := sagatest.Spread(n)
		slices.Sort(all)
		for i, at := range all {
			require.Equal(t, i+1, at)
		}
		require.Len(t, all, n)
	}
}
