package saga_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestCase0102StartStoresSagaAndDeadlineTogether(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		before := schema.Microseconds(time.Now())
		s.begin("1", func(sc Scene) error {
			time.Sleep(time.Second)
			sc.Schedule("t", 30*time.Minute)
			time.Sleep(time.Second)
			require.Zero(t, s.rows("{deadline}")) // one transaction: nothing shows before the commit
			require.Zero(t, s.rows("{instance}"))
			return nil
		})
		require.Equal(t, 1, s.count("1"))
		require.Len(t, s.pending("1"), 1)
		require.Equal(t, before.Add(time.Second+30*time.Minute), s.pending("1")[0].Due.Time)
	})
}

func TestCase0103FailedHandlerLeavesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		before, refused := s.instance("1"), errors.New("refused")
		err := s.Handle(t.Context(), Next{ID: "1", Do: func(sc Scene) error {
			sc.Schedule("t", time.Minute)
			sc.Send(Note{"gone"})
			sc.Add("tag", "x")
			return refused
		}})
		require.ErrorIs(t, err, refused)
		require.ErrorContains(t, err, "saga: handle saga_test.Next: story/1: refused")
		require.Equal(t, before, s.instance("1"))
		require.Empty(t, s.pending("1"))
		require.Empty(t, s.notes())
		require.Equal(t, 1, s.rows("{association}"))
		require.Equal(t, 1, s.rows("{event}"))
	})
}

func TestCase0104RescheduledNameIsReplaced(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error {
			sc.Schedule("parcel", 30*time.Minute, deadline.WithPayload(Parcel{Text: "old"}))
			return nil
		})
		first := s.pending("1")
		s.exec("UPDATE {deadline} SET attempts = 3, last_error = 'x', parked_at = next_at")
		s.next("1", func(sc Scene) error {
			sc.Schedule("parcel", 5*time.Minute, deadline.WithPayload(Parcel{Text: "new"}))
			return nil
		})
		second := s.pending("1")
		require.Len(t, second, 1)
		require.Equal(t, s.Now().Add(5*time.Minute), second[0].Due.Time)
		require.NotEqual(t, first[0].Token, second[0].Token)
		require.Equal(t, first[0].PublicID, second[0].PublicID)
		require.JSONEq(t, `{"Text":"new","Amount":0}`, *second[0].Payload)
		require.Zero(t, second[0].Attempts)
		require.True(t, second[0].ParkedAt.IsZero())
		require.Nil(t, second[0].LastError)
	})
}

func TestCase0105DueTimeInThePastFiresInTheNextSweep(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.ScheduleAt("t", time.Now().Add(-time.Hour)); return nil })
		require.Empty(t, s.script.names()) // 1.6: never inside the scheduling transaction
		require.NoError(t, s.poller(pollerConfig, time.Minute).Sweep(t.Context()))
		require.Equal(t, []string{"t"}, s.script.names())
		require.Empty(t, s.pending("1"))
	})
}

func TestCase0106PayloadSurvivesARestart(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		first := newStage(t, db, saga.Config{})
		sent := Parcel{Text: "\"quoted\" ✓ \x00 �", Amount: 1<<62 + 1}
		first.begin("1", func(sc Scene) error {
			sc.Schedule("parcel", time.Minute, deadline.WithPayload(&sent))
			sc.Schedule("t", time.Minute)
			sc.Schedule("u", time.Minute, deadline.WithPayload(sent)) // 1.8: not handed over
			return nil
		})
		first.Close()
		second := newStage(t, db, saga.Config{})
		var got Parcel
		second.script.on("parcel", func(sc Scene) error { got = sc.Parcel; return nil })
		time.Sleep(time.Minute)
		_, errs := second.sweep()
		require.Empty(t, errs)
		require.Equal(t, sent, got)
		require.Equal(t, 4, second.count("1"))
	})
}

func TestCase0107CancelledDeadlineNeverFires(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); sc.Schedule("u", time.Minute); return nil })
		s.exec("UPDATE {deadline} SET parked_at = next_at WHERE name = 'u'") // 1.10: parked or not
		s.next("1", func(sc Scene) error { sc.Cancel("t"); sc.Cancel("u"); return nil })
		require.Empty(t, s.pending("1"))
		time.Sleep(2 * time.Minute)
		fired, _ := s.sweep()
		require.Zero(t, fired)
	})
}

func TestCase0107CancellingWhatIsNotPendingSucceeds(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		_, errs := s.sweep()
		require.Empty(t, errs)
		s.next("1", func(sc Scene) error {
			for _, name := range []string{"t", "t", "never scheduled", "", "\x00", "\xff", "'; DROP TABLE x"} {
				sc.Cancel(name)
			}
			return nil
		})
		require.Equal(t, 3, s.count("1"))
	})
}

func TestCase0108LastCallForANameCounts(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, pending := range []bool{false, true} {
			id := map[bool]string{false: "new", true: "pending"}[pending]
			s.begin(id, func(sc Scene) error {
				if pending {
					for _, name := range []string{"t", "u", "v"} {
						sc.Schedule(name, time.Hour)
					}
				}
				return nil
			})
			s.next(id, func(sc Scene) error {
				sc.Schedule("t", time.Minute)
				sc.Cancel("t")
				sc.Cancel("u")
				sc.Schedule("u", 2*time.Minute)
				sc.Schedule("v", 3*time.Minute)
				sc.Schedule("v", 4*time.Minute)
				return nil
			})
			got := s.pending(id)
			require.Len(t, got, 2)
			require.Equal(t, "u", got[0].Name)
			require.Equal(t, s.Now().Add(2*time.Minute), got[0].Due.Time)
			require.Equal(t, "v", got[1].Name)
			require.Equal(t, s.Now().Add(4*time.Minute), got[1].Due.Time)
		}
	})
}

func TestCase0109CancellingLeavesOtherSagasAlone(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, id := range []string{"1", "2"} {
			s.begin(id, func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		}
		s.next("1", func(sc Scene) error { sc.Cancel("t"); return nil })
		time.Sleep(time.Minute)
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Equal(t, 2, s.count("1"))
		require.Equal(t, 2, s.count("2"))
		require.Equal(t, []string{"t"}, s.script.names())
	})
}

func TestCase0110EndingRemovesEveryDeadline(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		type finish struct {
			ID string `json:"id"`
		}
		s := newStage(t, db, saga.Config{}, story(t, "story", saga.On(func(s *Story, _ finish) { s.Count++ }, saga.By("id"), saga.Ends())))
		for _, id := range []string{"by End", "by Ends"} {
			s.begin(id, func(sc Scene) error {
				sc.Schedule("t", time.Minute)
				sc.Schedule("u", time.Minute)
				sc.Schedule("v", time.Minute)
				return nil
			})
		}
		s.exec("UPDATE {deadline} SET parked_at = next_at WHERE name = 'v'") // 1.20: parked ones too
		s.next("by End", func(sc Scene) error { sc.End(); sc.Send(Note{"kept"}); return nil })
		require.NoError(t, s.Handle(t.Context(), finish{"by Ends"}))
		for _, id := range []string{"by End", "by Ends"} {
			got := s.instance(id)
			require.True(t, got.Ended)
			require.Equal(t, s.Now(), got.EndedAt)
			require.Equal(t, 2, s.count(id)) // its last state stays
			require.Empty(t, s.pending(id))
		}
		require.Equal(t, []string{"kept"}, s.notes())
		require.Equal(t, 2, s.rows("{association}")) // the pairs that started them
	})
}

func TestCase0110FailedHandlerDoesNotEnd(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.script.on("v", func(Scene) error { return errors.New("no") }) // 1.19: Ends is after success
		s.begin("1", func(sc Scene) error { sc.Schedule("v", 0); return nil })
		_, errs := s.sweep()
		require.Len(t, errs, 1)
		require.False(t, s.instance("1").Ended)
		require.Len(t, s.pending("1"), 1)
	})
}

func TestCase0114InvocationsOfOneSagaNeverOverlap(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{Workers: 4})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		if db.Dialect() == "postgres" { // SQLite has one writer: another saga's commit waits there
			s.begin("2", nil)
		}
		running, proceed := 0, make(chan struct{})
		blocking := func(sc Scene) error {
			running++
			require.Equal(t, 1, running)
			<-proceed
			running--
			return nil
		}
		s.script.on("t", blocking)
		done := make(chan error, 2)
		due := s.due()
		go func() { done <- s.Handle(t.Context(), Next{ID: "1", Do: blocking}) }()
		go func() { done <- s.Dispatch(t.Context(), due[0]) }()
		if db.Dialect() == "postgres" {
			s.next("2", nil)
			require.Equal(t, 2, s.count("2"))
		}
		synctest.Wait()
		close(proceed)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.Equal(t, 3, s.count("1"))
	})
}
