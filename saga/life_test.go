package saga_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func end(sc Scene) error { sc.End(); return nil }

// SEMANTICS 1.20, 1.21
func TestEndBeatsScheduleWhateverTheOrder(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error {
			sc.End()
			sc.Schedule("t", 0)
			sc.Add("tag", "x")
			sc.Send(Note{"1"})
			return nil
		})
		s.begin("2", func(sc Scene) error {
			sc.Schedule("t", 0)
			sc.Add("tag", "x")
			sc.Send(Note{"2"})
			sc.End()
			return nil
		})
		s.begin("3", nil)
		s.next("3", func(sc Scene) error { sc.Remove("id", "3"); sc.Add("tag", "x"); sc.End(); return nil })
		for _, id := range []string{"1", "2", "3"} {
			require.True(t, s.instance(id).Ended)
			require.Empty(t, s.pending(id))
		}
		require.Equal(t, []string{"1", "2"}, s.notes())
		require.Equal(t, 3, s.rows("{association}"))
		require.Empty(t, s.signal.C())
	})
}

// SEMANTICS 1.22, 1.23, 1.24
func TestEndedSagaIsCalledByNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Add("tag", "x"); return nil })
		s.next("1", end)
		before := s.instance("1")
		s.begin("1", nil)
		s.next("1", nil)
		require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"x"}}))
		require.Equal(t, before, s.instance("1"))
		require.EqualValues(t, 3, s.Stats().Ignored)
		require.Equal(t, 2, s.rows("{event}"))
	})
}

// SEMANTICS 1.23
func TestStartEventThatMeetsALiveSagaMovesItIfDeclared(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		s.begin("1", nil) // saga.On beside saga.Start
		require.Equal(t, 2, s.count("1"))
		require.NoError(t, s.Handle(t.Context(), Again{ID: "1"})) // only saga.Start
		require.Equal(t, 2, s.count("1"))
		require.EqualValues(t, 1, s.Stats().Ignored)
	})
}

// SEMANTICS 1.24
func TestAgainBeginsANewLifeWithNothingOfTheOld(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		require.NoError(t, s.Handle(t.Context(), Again{ID: "1", Do: func(sc Scene) error {
			sc.Notes = []string{"old"}
			sc.Add("tag", "old")
			sc.Schedule("t", time.Hour)
			return nil
		}}, saga.WithID("first")))
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1", Do: end}, saga.WithID("end")))
		ended := s.instance("1")
		time.Sleep(time.Minute)
		for _, seen := range []string{"first", "end"} { // dedupe records outlive a life
			require.NoError(t, s.Handle(t.Context(), Again{ID: "1"}, saga.WithID(seen)))
		}
		require.Equal(t, ended, s.instance("1"))
		require.EqualValues(t, 2, s.Stats().Duplicates)

		require.NoError(t, s.Handle(t.Context(), Again{ID: "1", Do: func(sc Scene) error { sc.Add("tag", "new"); return nil }}, saga.WithID("second")))
		got := s.instance("1")
		require.False(t, got.Ended)
		require.True(t, got.EndedAt.IsZero())
		require.Equal(t, s.Now(), got.StartedAt)
		require.JSONEq(t, `{"Count":1,"Notes":null}`, string(got.State))
		require.Equal(t, ended.Version+1, got.Version)
		require.Empty(t, s.pending("1"))
		require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"old"}}))
		require.Equal(t, 1, s.count("1"))
		require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"new"}}))
		require.Equal(t, 2, s.count("1"))
	})
}

// SEMANTICS 1.24: an event that meets two tombstones begins again the saga of its own id.
func TestAgainPrefersTheTombstoneOfTheEventsID(t *testing.T) {
	type event struct{ A, B string }
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{}, story(t, "story",
			saga.Start(func(_ *Story, _ event, l saga.Lifecycle) { l.End() }, saga.By("a"), saga.By("b"), saga.Again())))
		require.NoError(t, s.Handle(t.Context(), event{A: "m"}))
		require.NoError(t, s.Handle(t.Context(), event{B: "x"}, saga.WithID("a")))
		require.NoError(t, s.Handle(t.Context(), event{B: "y"}, saga.WithID("z")))
		for i, other := range []string{"x", "y"} { // of a saga before it, and of one behind it
			require.NoError(t, s.Handle(t.Context(), event{A: "m", B: other}))
			require.EqualValues(t, i+2, s.instance("m").Version)
		}
		require.EqualValues(t, 1, s.instance("a").Version)
		require.EqualValues(t, 1, s.instance("z").Version)
	})
}

// SEMANTICS 1.25, P-65
func TestP65ConcurrentStartsMakeOneSaga(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		engines := []*stage{newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})}
		const keys = 100
		var wg sync.WaitGroup
		errs := make(chan error, 4*keys)
		for i := range keys {
			for j := range 4 {
				wg.Go(func() {
					errs <- engines[j%2].Handle(context.Background(), Begin{ID: fmt.Sprint(i), Do: func(sc Scene) error { sc.Send(Note{}); return nil }})
				})
			}
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, keys, engines[0].rows("{instance}"))
		require.Equal(t, keys, engines[0].rows("{association}"))
		for i := range keys {
			require.Equal(t, 4, engines[0].count(fmt.Sprint(i))) // the losers found it, and moved it
		}
		require.Equal(t, 4*keys, engines[0].rows("{command}"))
	})
}

// P-65's neighbour: a redelivery that races with the first delivery.
func TestP65ConcurrentDeliveriesOfOneEventHaveOneEffect(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		engines := []*stage{newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})}
		var wg sync.WaitGroup
		errs := make(chan error, 100)
		for i := range 25 {
			for j := range 4 {
				wg.Go(func() {
					errs <- engines[j%2].Handle(context.Background(), Begin{ID: fmt.Sprint(i)}, saga.WithID(fmt.Sprint("e", i)))
				})
			}
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		for i := range 25 {
			require.Equal(t, 1, engines[0].count(fmt.Sprint(i)))
		}
		require.EqualValues(t, 75, engines[0].Stats().Duplicates+engines[1].Stats().Duplicates)
	})
}

// A prefix that is part of an index's name must not be taken for the index.
func TestTablePrefixDoesNotHideAConcurrentStart(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			db := schematest.Open(t, schematest.URL(t, name), schema.WithNames(schema.Names{Prefix: "command_"}))
			engines := []*stage{newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})}
			var wg sync.WaitGroup
			errs := make(chan error, 40)
			for i := range 40 {
				wg.Go(func() { errs <- engines[i%2].Handle(context.Background(), Begin{ID: fmt.Sprint(i / 4)}) })
			}
			wg.Wait()
			close(errs)
			for err := range errs {
				require.NoError(t, err)
			}
			require.Equal(t, 10, engines[0].rows("{instance}"))
		})
	}
}

// SEMANTICS 1.33
func TestDeadlineWithoutALiveSagaIsRemovedAndCounted(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, id := range []string{"missing", "ended"} {
			s.begin(id, func(sc Scene) error { sc.Schedule("t", 0); return nil })
		}
		s.exec("DELETE FROM {instance} WHERE saga_id = 'missing'")
		s.exec("UPDATE {instance} SET status = 'ended' WHERE saga_id = 'ended'")
		fired, errs := s.sweep()
		require.Equal(t, 2, fired)
		require.Empty(t, errs)
		require.Empty(t, s.script.names())
		require.Zero(t, s.rows("{deadline}"))
		require.EqualValues(t, 2, s.Stats().Orphaned)
		require.Equal(t, 1, s.rows("{instance}"))
	})
}

// SEMANTICS 1.36
func TestFiringTellsNameTimesAndAttempt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("t", time.Minute); return nil })
		due := s.Now().Add(time.Minute)
		time.Sleep(2 * time.Minute)
		s.script.on("t", func(Scene) error { return errors.New("no") })
		s.sweep()
		_, err := deadline.NewStore(db).Fail(t.Context(), s.due()[0], errors.New("no"), s.Now().Add(time.Minute), false)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		s.script.on("t", nil)
		s.sweep()
		require.Equal(t, []saga.Firing{
			{Name: "t", Due: due, At: due.Add(time.Minute), Attempt: 1},
			{Name: "t", Due: due, At: due.Add(2 * time.Minute), Attempt: 2},
		}, s.script.fired)
	})
}

// SEMANTICS 1.34, P-86
func TestUndecodablePayloadIsPermanentAndKept(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error { sc.Schedule("parcel", 0, deadline.WithPayload(Parcel{})); return nil })
		for what, set := range map[string]string{
			"broken text":  "payload = '{\"Text\":'",
			"another type": "payload_type = 'renamed.Parcel'",
			"no payload":   "payload = NULL",
			"no type":      "payload_type = NULL",
		} {
			s.exec("UPDATE {deadline} SET payload = '1', payload_type = 'saga_test.Parcel', parked_at = NULL, attempts = 0, next_at = due_at")
			s.exec("UPDATE {deadline} SET " + set)
			before := s.pending("1")[0]
			require.NoError(t, s.poller(pollerConfig, time.Minute).Sweep(t.Context()), what)
			after := s.pending("1")[0]
			require.False(t, after.ParkedAt.IsZero(), what)
			require.Equal(t, 1, after.Attempts)
			require.Equal(t, before.Payload, after.Payload)
			require.Equal(t, before.PayloadType, after.PayloadType)
		}
		require.Equal(t, 1, s.count("1"))
	})
}
