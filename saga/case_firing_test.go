package saga_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

var pollerConfig = poller.Config{Interval: 30 * time.Second}

func TestCase0111EndingDeadlineLeavesOneCommand(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.script.on("v", func(sc Scene) error { sc.Send(Note{"reverse"}); return nil })
		s.begin("1", func(sc Scene) error { sc.Schedule("v", time.Minute); sc.Schedule("u", time.Hour); return nil })
		time.Sleep(time.Minute)
		_, errs := s.sweep()
		require.Empty(t, errs)
		require.True(t, s.instance("1").Ended)
		require.Empty(t, s.pending("1"))
		require.Equal(t, []string{"reverse"}, s.notes())
	})
}

func TestCase0112HandlerMayScheduleItsOwnName(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.script.on("t", func(sc Scene) error { sc.Schedule("t", 10*time.Minute); return nil })
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		time.Sleep(time.Minute)
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Len(t, s.pending("1"), 1)
		require.Equal(t, s.Now().Add(10*time.Minute), s.pending("1")[0].Due.Time)
		fired, _ = s.sweep()
		require.Zero(t, fired)
	})
}

func TestCase0112CancellingTheFiredNameChangesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.script.on("t", func(sc Scene) error { sc.Schedule("t", 0); sc.Cancel("t"); return nil })
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		_, errs := s.sweep()
		require.Empty(t, errs)
		require.Empty(t, s.pending("1"))
		require.Equal(t, 2, s.count("1"))
	})
}

func TestCase0113CancelAheadInTheQueueDropsTheSelectedDeadline(t *testing.T) {
	for what, act := range map[string]Act{
		"cancelled":   func(sc Scene) error { sc.Cancel("t"); return nil },
		"rescheduled": func(sc Scene) error { sc.Schedule("t", time.Hour); return nil },
		"ended":       func(sc Scene) error { sc.End(); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
				s := newStage(t, db, saga.Config{})
				s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
				due := s.due()
				require.Len(t, due, 1)
				inside, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
				go func() {
					done <- s.Handle(t.Context(), Next{ID: "1", Do: func(sc Scene) error {
						close(inside)
						<-proceed
						return act(sc)
					}})
				}()
				<-inside
				go func() { done <- s.Dispatch(t.Context(), due[0]) }()
				synctest.Wait()
				close(proceed)
				require.NoError(t, <-done)
				require.NoError(t, <-done)
				require.Empty(t, s.script.names())
				require.Equal(t, 2, s.count("1"))
				require.EqualValues(t, 1, s.Stats().Stale)
			})
		})
	}
}

func TestCase0115FailedDeadlineIsTriedAgainAfterItsBackoff(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		p := s.poller(pollerConfig, time.Minute)
		s.script.on("t", func(sc Scene) error {
			sc.Send(Note{fmt.Sprint("attempt ", sc.Firing.Attempt)})
			if sc.Firing.Attempt == 1 {
				return errors.New("not yet")
			}
			return nil
		})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		require.NoError(t, p.Sweep(t.Context()))
		require.Equal(t, 1, s.pending("1")[0].Attempts)
		require.Contains(t, *s.pending("1")[0].LastError, "not yet")
		require.NoError(t, p.Sweep(t.Context()))
		require.Len(t, s.script.names(), 1) // the backoff is not over
		time.Sleep(time.Second)
		require.NoError(t, p.Sweep(t.Context()))
		require.Len(t, s.script.names(), 2)
		require.Equal(t, 2, s.count("1"))
		require.Equal(t, []string{"attempt 2"}, s.notes())
		require.Empty(t, s.pending("1"))
	})
}

func TestCase0116StopBeforeCommitFiresAgainAndAfterCommitDoesNot(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		first := newStage(t, db, saga.Config{})
		first.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		due := first.due()
		ctx, stop := context.WithCancel(t.Context())
		first.script.on("t", func(sc Scene) error { sc.Send(Note{"sent"}); stop(); return nil })
		require.Error(t, first.Dispatch(ctx, due[0]))
		require.Empty(t, first.notes())
		first.Close()

		second := newStage(t, db, saga.Config{})
		second.script.on("t", func(sc Scene) error { sc.Send(Note{"sent"}); return nil })
		fired, errs := second.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		second.Close()

		third := newStage(t, db, saga.Config{})
		require.NoError(t, third.Dispatch(t.Context(), due[0])) // what the first one had selected
		fired, _ = third.sweep()
		require.Zero(t, fired)
		require.Empty(t, third.script.names())
		require.Equal(t, []string{"sent"}, third.notes())
	})
}

func TestCase0117RowDueDuringDowntimeFiresInTheFirstSweep(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		first := newStage(t, db, saga.Config{})
		first.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		first.Close()
		time.Sleep(24 * time.Hour)
		second := newStage(t, db, saga.Config{})
		started := time.Now()
		var at time.Time
		second.script.on("t", func(sc Scene) error { at = sc.Firing.At; return nil })
		defer second.run(second.poller(pollerConfig, time.Minute))()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"t"}, second.script.names())
		require.Equal(t, schema.Microseconds(started), at)
	})
}

func TestCase0118SweepReadsBatchesInDueOrder(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{Workers: 1})
		for i := range 250 {
			s.begin(fmt.Sprint(i), func(sc Scene) error { sc.Schedule("t", time.Duration(250-i)*time.Second); return nil })
		}
		time.Sleep(time.Hour)
		reads := map[time.Time]int{}
		cfg := pollerConfig
		cfg.BatchSize = 100
		require.NoError(t, s.poller(cfg, time.Minute).Sweep(t.Context()))
		require.Len(t, s.script.fired, 250)
		for _, f := range s.script.fired {
			reads[f.Due]++
		}
		require.Len(t, reads, 250)
		require.Zero(t, s.rows("{deadline}"))
	})
}

func TestCase0119RowsThatAlwaysFailDoNotStopANewerOne(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for i := range 5 {
			s.begin(fmt.Sprint("bad ", i), func(sc Scene) error { sc.Schedule("t", time.Second); return nil })
		}
		s.begin("good", func(sc Scene) error { sc.Schedule("u", 2*time.Second); return nil })
		s.script.on("t", func(Scene) error { return errors.New("always") })
		cfg := pollerConfig
		cfg.BatchSize = 5
		p := s.poller(cfg, time.Minute)
		time.Sleep(time.Minute)
		require.NoError(t, p.Sweep(t.Context()))
		require.Equal(t, 2, s.count("good"))
		for range 2 {
			time.Sleep(time.Minute)
			require.NoError(t, p.Sweep(t.Context()))
		}
		parked := 0
		for q, err := range s.Parked(t.Context(), saga.Query{Type: "story"}) {
			require.NoError(t, err)
			require.Equal(t, saga.ParkedDeadline, q.Kind)
			require.Equal(t, 3, q.Attempts)
			require.Contains(t, q.LastError, "always")
			parked++
		}
		require.Equal(t, 5, parked)
		time.Sleep(time.Hour)
		require.NoError(t, p.Sweep(t.Context()))
		require.Len(t, s.script.names(), 16)
	})
}

func TestCase0120OnlyTheHolderSweeps(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		one, two := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		stop := one.run(one.poller(pollerConfig, time.Minute))
		time.Sleep(time.Second)
		defer two.run(two.poller(pollerConfig, time.Minute))()
		require.ErrorIs(t, two.poller(pollerConfig, time.Minute).Sweep(t.Context()), lease.ErrHeld)
		for i := range 10 {
			two.begin(fmt.Sprint(i), func(sc Scene) error { sc.Schedule("t", 10*time.Second); return nil })
		}
		time.Sleep(2 * time.Minute)
		require.Len(t, one.script.names(), 10)
		require.Empty(t, two.script.names())
		stop()
		two.begin("late", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		time.Sleep(31 * time.Second)
		require.Equal(t, []string{"t"}, two.script.names())
	})
}

func TestCase0120TakeoverAwaitsTheExpiryOfADeadHoldersLease(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.exec("INSERT INTO {deadline_lock} (name, holder, term, expires_at) VALUES ('test', 'dead', 7, {now+})", time.Minute)
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		defer s.run(s.poller(poller.Config{Interval: time.Second}, time.Minute))()
		time.Sleep(time.Minute - time.Microsecond)
		synctest.Wait()
		require.Empty(t, s.script.names())
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"t"}, s.script.names())
	})
}

func TestCase0121SlowHandlerIsNotQueuedAgain(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.script.on("t", func(sc Scene) error { time.Sleep(10 * time.Second); return nil })
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		defer s.run(s.poller(poller.Config{Interval: time.Second}, time.Minute))()
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, s.rows("{deadline}"))
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"t"}, s.script.names())
		require.Zero(t, s.Stats().Stale)
		require.Equal(t, 2, s.count("1"))
	})
}
