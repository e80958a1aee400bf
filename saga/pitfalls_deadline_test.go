package saga_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestP01CancelIsIdempotent(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		cancel := func(sc Scene) error { sc.Cancel("t"); sc.Cancel("t"); return nil }
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.script.on("t", cancel) // while it fires
		_, errs := s.sweep()
		require.Empty(t, errs)
		s.next("1", cancel) // after it fired
		s.next("1", cancel)
		require.Equal(t, 4, s.count("1"))
	})
}

func TestP02ScheduleReplaces(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		for i := range 3 {
			s.next("1", func(sc Scene) error { sc.Schedule("t", time.Duration(3-i)*time.Minute); return nil })
		}
		require.Len(t, s.pending("1"), 1)
		require.Equal(t, s.Now().Add(time.Minute), s.pending("1")[0].Due.Time)
	})
}

func TestP03OperationsApplyAtTheFlush(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		before := s.pending("1")
		for _, act := range []Act{
			func(sc Scene) error { sc.Cancel("t"); sc.Schedule("t", time.Hour); panic("no") },
			func(sc Scene) error { sc.Schedule("t", time.Hour); sc.Cancel("t"); panic("no") },
			func(sc Scene) error { sc.End(); panic("no") },
		} {
			require.Error(t, s.Handle(t.Context(), Next{ID: "1", Do: act}))
			require.Equal(t, before, s.pending("1"))
		}
		require.False(t, s.instance("1").Ended)
	})
}

func TestP04RowStaysUntilTheHandlersTransactionCommits(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		dying, other := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		dying.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		dying.script.on("t", func(sc Scene) error {
			require.Equal(t, 1, dying.rows("{deadline}")) // others see it still
			goexit()
			return nil
		})
		_, errs := dying.sweep()
		require.Len(t, errs, 1)
		fired, errs := other.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Equal(t, 2, other.count("1"))
	})
}

func TestP05DeadlineWithoutHandlerFailsTheFlush(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.Schedule("paymentTimeout", 0); return nil }})
		require.ErrorContains(t, err, `deadline "paymentTimeout": story has no saga.OnDeadline for it`)
		s.empty()
		s.begin("1", func(sc Scene) error { sc.Schedule("paymentTimeout", 0); sc.Cancel("paymentTimeout"); return nil })
	})
}

// Rows as version 0.1 wrote them. Rows of a later version are added below, never changed.
func TestP06RowsOfReleasedVersionsDecode(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{Names: []saga.Naming{saga.Named[Parcel]("parcel-v1")}})
		at := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		s.exec(`INSERT INTO {instance} (saga_type, saga_id, state, version, status, started_at, updated_at) VALUES ('story', '1', ?, 7, 'open', ?, ?)`,
			`{"Count":7,"Notes":["a","\u0000"]}`, at, at)
		s.exec(`INSERT INTO {association} (saga_type, property, value, saga_id, exclusive) VALUES ('story', 'id', '1', '1', true)`)
		s.exec(`INSERT INTO {deadline} (saga_type, saga_id, name, token, public_id, due_at, next_at, payload_type, payload)
			VALUES ('story', '1', 'parcel', 'token', 'public', ?, ?, 'parcel-v1', ?)`, at, at, `{"Text":"x","Amount":9007199254740993}`)
		var got Parcel
		s.script.on("parcel", func(sc Scene) error { got = sc.Parcel; return nil })
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Equal(t, Parcel{"x", 9007199254740993}, got)
		s.next("1", nil)
		require.Equal(t, 9, s.count("1"))
	})
}

func TestP07EqualTypeNamesAreRefused(t *testing.T) {
	db := schematest.Open(t, schematest.URL(t, "sqlite"))
	_, err := saga.New(db, saga.Config{Service: saga.Services(&script{})}, story(t, "story"), story(t, "story"))
	require.ErrorContains(t, err, `saga: story: the name "story" is taken by the saga type of saga_test.Story`)
}

func TestP08DeadlineOfASagaThatEndedMeanwhileIsDroppedAndCounted(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		due := s.due()
		s.next("1", end)
		require.NoError(t, s.Dispatch(t.Context(), due[0]))
		require.Empty(t, s.script.names())
		require.EqualValues(t, 1, s.Stats().Stale)
		require.NotContains(t, s.log.String(), "ERROR")
	})
}

func TestP09EventAndDeadlineOfOneTypeAreRoutedByKind(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var calls []string
		s := newStage(t, db, saga.Config{}, story(t, "story",
			saga.On(func(_ *Story, p Parcel) { calls = append(calls, "event "+p.Text) }, saga.By("text")),
			saga.OnDeadline("timeout", func(_ *Story, p Parcel) { calls = append(calls, "deadline "+p.Text) }),
		))
		s.begin("1", func(sc Scene) error {
			sc.Add("text", "x")
			sc.Schedule("timeout", 0, deadline.WithPayload(Parcel{Text: "x"}))
			return nil
		})
		require.NoError(t, s.Handle(t.Context(), Parcel{Text: "x"}))
		s.sweep()
		require.Equal(t, []string{"event x", "deadline x"}, calls)
	})
}

func TestP10TargetOfADeadlineIsTypeIDAndName(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var fired []string
		other, err := saga.Define[Story]("other", saga.Start(func(s *Story, _ Begin, d saga.Deadlines) { d.Schedule("t", time.Minute) }, saga.By("id")),
			saga.OnDeadline("t", func(*Story) { fired = append(fired, "other") }))
		require.NoError(t, err)
		s := newStage(t, db, saga.Config{}, story(t, "story"), other)
		s.script.on("t", func(Scene) error { fired = append(fired, "story"); return nil })
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.sweep()
		require.Equal(t, []string{"story"}, fired)
		s.next("1", func(sc Scene) error { sc.Cancel("t"); return nil })
		time.Sleep(time.Minute)
		s.sweep()
		require.Equal(t, []string{"story", "other"}, fired)
	})
}

func TestP11DeadlineNeverStartsASaga(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{}, story(t, "story",
			saga.Start(func(*Story, Parcel) { t.Error("started") }, saga.By("text"), saga.Again())))
		s.begin("1", func(sc Scene) error { sc.Schedule("parcel", 0, deadline.WithPayload(Parcel{Text: "1"})); return nil })
		s.exec("DELETE FROM {instance}")
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Zero(t, s.rows("{instance}"))
		require.Zero(t, s.rows("{deadline}"))
	})
}

func TestP12PastIsDueNow(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error {
			sc.Schedule("t", -10*time.Second)
			sc.Schedule("u", 0)
			sc.ScheduleAt("v", time.Unix(0, 0))
			return nil
		})
		require.Empty(t, s.script.names())
		fired, _ := s.sweep()
		require.Equal(t, 3, fired)
		require.Equal(t, "v", s.script.names()[0])
	})
}

func TestP14RemovalAndEffectAreOneTransaction(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.script.on("t", func(sc Scene) error { sc.Send(Note{"x"}); return nil })
		s.exec("ALTER TABLE {command} RENAME TO away") // between claim and send
		_, errs := s.sweep()
		require.Len(t, errs, 1)
		require.Len(t, s.pending("1"), 1)
		s.exec("ALTER TABLE away RENAME TO {command}")
		_, errs = s.sweep()
		require.Empty(t, errs)
		require.Equal(t, []string{"x"}, s.notes())
		require.Equal(t, 2, s.count("1"))
	})
}

func TestP17SignalComesAfterTheCommit(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		defer s.run(s.poller(pollerConfig, time.Minute))()
		time.Sleep(time.Second)
		var fired time.Time
		s.script.on("t", func(Scene) error { fired = time.Now(); return nil })
		s.begin("1", func(sc Scene) error {
			sc.Schedule("t", time.Millisecond)
			time.Sleep(5 * time.Second) // a slow commit
			require.Empty(t, s.signal.C())
			return nil
		})
		committed := time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, committed, fired)
		s.begin("2", func(sc Scene) error { sc.Schedule("t", time.Millisecond); return nil })
		time.Sleep(time.Millisecond)
		require.Error(t, s.Handle(t.Context(), Next{ID: "1", Do: func(sc Scene) error { sc.Schedule("u", 0); return errors.New("no") }}))
		require.Empty(t, s.signal.C())
	})
}

func TestP20EndedSagasDeadlineDropsAndFaultsNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		time.Sleep(time.Minute)
		stale := s.due()
		s.next("1", end)
		ended := s.instance("1")
		time.Sleep(time.Hour)
		fired, _ := s.sweep()
		require.Zero(t, fired)
		require.NoError(t, s.Dispatch(t.Context(), stale[0]))
		require.Equal(t, ended, s.instance("1"))
	})
}

func TestP21CancelStaysIdempotentAcrossAttempts(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		attempts := 0
		s.next("1", func(sc Scene) error {
			sc.Cancel("t")
			if attempts++; attempts == 1 {
				return schema.ErrConflict
			}
			return nil
		})
		require.Equal(t, 2, attempts)
		require.Empty(t, s.pending("1"))
		require.Equal(t, 2, s.count("1"))
	})
}

func TestP22ScheduleNeverEscapesAFailedAttempt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, fail := range []Act{
			func(Scene) error { panic("no") },
			func(Scene) error { return errors.New("no") },
			func(Scene) error { goexit(); return nil },
			func(sc Scene) error { sc.Send(broken{}); return nil },
		} {
			require.Error(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.Schedule("t", 0); sc.Send(Note{}); return fail(sc) }}))
			s.empty()
		}
		require.Empty(t, s.signal.C())
		require.Empty(t, s.outbox.C())
	})
}

func TestP23EndingChecksTheVersion(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		a, b := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			a.begin(id, nil)
			var wg sync.WaitGroup
			errs := make(chan error, 2)
			wg.Go(func() {
				errs <- a.Handle(context.Background(), Next{ID: id, Do: func(sc Scene) error { sc.Send(Note{}); return end(sc) }})
			})
			wg.Go(func() { errs <- b.Handle(context.Background(), Next{ID: id}) })
			wg.Wait()
			require.NoError(t, errors.Join(<-errs, <-errs))
			got := a.instance(id)
			require.True(t, got.Ended)
			require.EqualValues(t, got.Version, a.count(id)) // no effect lost, none from an old state
		}
		require.Len(t, a.notes(), 8)
	})
}

func TestP30ImpossibleDateIsRefusedAtTheFlush(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, at := range []time.Time{{}, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			require.Error(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.ScheduleAt("t", at); return nil }}))
		}
		s.empty()
	})
}

func TestP38FailureIsRecordedOnlyWhileTheTokenMatches(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); sc.Schedule("u", 0); sc.Schedule("v", 0); return nil })
		store, due := deadline.NewStore(db), s.due()
		require.NoError(t, s.Dispatch(t.Context(), due[0]))                               // finished
		s.next("1", func(sc Scene) error { sc.Schedule("u", time.Hour); return nil })     // replaced
		found, err := store.Fail(t.Context(), due[2], errors.New("first"), s.Now(), true) // parked
		require.NoError(t, err)
		require.True(t, found)
		before := s.pending("1")
		for _, d := range due {
			found, err := store.Fail(t.Context(), d, errors.New("late"), s.Now(), false)
			require.NoError(t, err)
			require.False(t, found)
		}
		require.Equal(t, before, s.pending("1"))
		require.NoError(t, s.Dispatch(t.Context(), due[2])) // a parked row is not claimed
		require.Equal(t, []string{"t"}, s.script.names())
	})
}

func TestP62TwoDeadlinesThatBothEndLeaveOneTombstone(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		a, b := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		for _, s := range []*stage{a, b} {
			s.script.on("t", end)
			s.script.on("u", end)
		}
		a.begin("1", func(sc Scene) error { sc.Schedule("t", 0); sc.Schedule("u", 0); return nil })
		due := a.due()
		var wg sync.WaitGroup
		errs := make(chan error, 4)
		for _, s := range []*stage{a, b} {
			for _, d := range due {
				wg.Go(func() { errs <- s.Dispatch(context.Background(), d) })
			}
		}
		wg.Wait()
		require.NoError(t, errors.Join(<-errs, <-errs, <-errs, <-errs))
		require.True(t, a.instance("1").Ended)
		require.Equal(t, 2, a.count("1"))
		require.Zero(t, a.rows("{deadline}"))
		require.EqualValues(t, 3, a.Stats().Stale+b.Stats().Stale)
	})
}
