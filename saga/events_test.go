package saga_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// SEMANTICS 4.16
func TestEventIDIsHandledOnceBySaga(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for range 3 {
			require.NoError(t, s.Handle(t.Context(), Begin{ID: "1"}, saga.WithID("e1")))
		}
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "2"}, saga.WithID("e1"))) // another saga has not seen it
		require.Equal(t, 1, s.count("1"))
		require.Equal(t, 1, s.count("2"))
		require.EqualValues(t, 2, s.Stats().Duplicates)
		s.next("1", nil)
		s.next("1", nil) // no id: a new one each time
		require.Equal(t, 3, s.count("1"))
	})
}

// SEMANTICS 4.16
func TestFailedOrIgnoredEventIsNotMarkedHandled(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1"}, saga.WithID("early")))
		require.Error(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(Scene) error { return errors.New("no") }}, saga.WithID("e1")))
		s.empty()
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "1"}, saga.WithID("e1")))
		require.NoError(t, s.Handle(t.Context(), Next{ID: "1"}, saga.WithID("early")))
		require.Equal(t, 2, s.count("1"))
		require.EqualValues(t, 1, s.Stats().Ignored)
	})
}

// SEMANTICS 3.6, case 5.3.25
func TestOneSagaFailingNeitherStopsNorUndoesTheOthers(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, id := range []string{"1", "2", "3"} {
			s.begin(id, func(sc Scene) error { sc.Add("tag", "shared"); sc.Notes = []string{id}; return nil })
		}
		failing := true
		event := Next{Tag: []string{"shared"}, Do: func(sc Scene) error {
			if failing && sc.Notes[0] != "1" {
				return fmt.Errorf("%s fails", sc.Notes[0])
			}
			sc.Send(Note{sc.Notes[0]})
			return nil
		}}
		err := s.Handle(t.Context(), event, saga.WithID("e"))
		require.ErrorContains(t, err, "story/2: 2 fails")
		require.ErrorContains(t, err, "story/3: 3 fails")
		require.NotContains(t, err.Error(), "story/1")
		require.Equal(t, []string{"1"}, s.notes())
		failing = false
		require.NoError(t, s.Handle(t.Context(), event, saga.WithID("e")))
		got := s.notes()
		slices.Sort(got)
		require.Equal(t, []string{"1", "2", "3"}, got)
		require.Equal(t, 2, s.count("1"))
	})
}

func TestOneEventMovesSagasOfSeveralTypes(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{}, story(t, "story"), story(t, "another \"story\""))
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil }) // P-10: equal ids and names
		require.Equal(t, 1, s.count("1"))
		other := saga.Key{Type: "another \"story\"", ID: "1"}
		got, err := s.Instance(t.Context(), other)
		require.NoError(t, err)
		require.EqualValues(t, 1, got.Version)
		s.script.on("t", func(sc Scene) error { sc.End(); return nil })
		due := s.due()
		require.Len(t, due, 2)
		require.NoError(t, s.Dispatch(t.Context(), due[1])) // "story" comes behind "another"
		require.True(t, s.instance("1").Ended)
		got, err = s.Instance(t.Context(), other)
		require.NoError(t, err)
		require.False(t, got.Ended)
		pending, err := s.Engine.Deadlines(t.Context(), other)
		require.NoError(t, err)
		require.Len(t, pending, 1)
	})
}

// SEMANTICS 1.2, P-09
func TestInterceptorsStandAroundEventsAndNotDeadlines(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var calls []string
		type contextKey struct{}
		around := func(name string) saga.Interceptor {
			return func(ctx context.Context, m saga.Message, next func(context.Context, saga.Message) error) error {
				calls = append(calls, name)
				m.Metadata = saga.Metadata{"by": name, "$reserved": "x"}
				err := next(context.WithValue(ctx, contextKey{}, name), m)
				calls = append(calls, name+" done")
				return err
			}
		}
		s := newStage(t, db, saga.Config{Interceptors: []saga.Interceptor{around("outer"), around("inner")}})
		s.begin("1", func(sc Scene) error {
			require.Equal(t, saga.Metadata{"by": "inner"}, sc.Metadata)
			require.Equal(t, "inner", sc.Value(contextKey{}))
			sc.Schedule("t", 0)
			return nil
		})
		require.Equal(t, []string{"outer", "inner", "inner done", "outer done"}, calls)
		fired, errs := s.sweep()
		require.Equal(t, 1, fired)
		require.Empty(t, errs)
		require.Len(t, calls, 4)
	})
}

func TestInterceptorMayRefuseAndChangeTheEvent(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		refused := errors.New("refused")
		shared := saga.Metadata{"$dropped": "x", "kept": "y"}
		s := newStage(t, db, saga.Config{Interceptors: []saga.Interceptor{
			func(ctx context.Context, m saga.Message, next func(context.Context, saga.Message) error) error {
				switch m.ID {
				case "refuse":
					return refused
				case "nil":
					m.Payload = nil
				case "twice":
					require.NoError(t, next(ctx, m))
				}
				if m.ID != "nil" {
					m.Payload = &Begin{ID: "changed"}
				}
				m.Metadata = shared
				return next(ctx, m)
			},
		}})
		require.ErrorIs(t, s.Handle(t.Context(), Begin{ID: "1"}, saga.WithID("refuse")), refused)
		require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1"}, saga.WithID("nil")), "the event is nil")
		s.empty()
		s.begin("1", nil)
		require.Equal(t, 1, s.count("changed"))
		require.Equal(t, saga.Metadata{"$dropped": "x", "kept": "y"}, shared) // the interceptor's own map
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "changed"}, saga.WithID("twice")))
		require.Equal(t, 2, s.count("changed"))
	})
}

// SEMANTICS 3.13
func TestNilEventIsRefusedAndAPointerCountsAsItsValue(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		var none *Begin
		for _, event := range []any{nil, none, &none} {
			require.EqualError(t, s.Handle(t.Context(), event), "saga: handle: the event is nil")
		}
		event := &Begin{ID: "1"}
		require.NoError(t, s.Handle(t.Context(), &event))
		require.Equal(t, 1, s.count("1"))
	})
}

// SEMANTICS 3.2
func TestEventThatNoHandlerTakesCausesNoQuery(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		require.NoError(t, db.DB.Close())
		require.NoError(t, s.Handle(t.Context(), Note{"no event"}))
		require.EqualValues(t, 1, s.Stats().Ignored)
	})
}

// SEMANTICS 4.15
func TestHandleFromInsideAHandlerFailsAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s, neighbour := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		s.begin("1", func(sc Scene) error {
			sc.Schedule("t", 0)
			require.ErrorIs(t, s.Handle(sc, Next{ID: "1"}), saga.ErrNested)
			require.ErrorIs(t, neighbour.Handle(sc, Begin{ID: "2"}), saga.ErrNested)
			ctx, cancel := context.WithTimeout(sc, time.Second)
			defer cancel()
			require.ErrorIs(t, s.HandleTx(ctx, nil, Next{ID: "1"}), saga.ErrNested)
			return nil
		})
		s.script.on("t", func(sc Scene) error { return s.Handle(sc, Next{ID: "1"}) })
		_, errs := s.sweep()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], saga.ErrNested)
	})
}

// SEMANTICS 1.31, error policy
func TestPanicIsAnErrorThatWrapsItsCause(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		cause := errors.New("cause")
		err := s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { sc.Send(Note{}); panic(cause) }})
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "panic in saga_test.(*Story).OnBegin: cause")
		require.Contains(t, s.log.String(), "TestPanicIsAnErrorThatWrapsItsCause")
		require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(sc Scene) error { panic(nil) }}), "panic in")
		s.empty()
	})
}

type explosive struct{ ID string }

func (explosive) MarshalJSON() ([]byte, error) { panic("boom") }
func (*explosive) UnmarshalJSON([]byte) error  { panic("boom") }

func startExplosive(*explosive, Begin)                {}
func sendExplosive(_ *Story, _ Next, c saga.Commands) { c.Send(explosive{}) }

func TestPanicWhileEncodingIsAnErrorOfTheInvocation(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		d, err := saga.Define[explosive]("explosive", saga.Start(startExplosive, saga.By("id")))
		require.NoError(t, err)
		e := newEngine(t, db, saga.Config{Logger: slog.New(slog.DiscardHandler)}, d)
		require.ErrorContains(t, e.Handle(t.Context(), Begin{ID: "1"}), "saga: handle saga_test.Begin: explosive/1: panic: boom")

		d, err = saga.Define[Story]("story", saga.Start((*Story).OnBegin, saga.By("id")), saga.On(sendExplosive, saga.By("id")))
		require.NoError(t, err)
		e = newEngine(t, db, saga.Config{Logger: slog.New(slog.DiscardHandler)}, d)
		require.NoError(t, e.Handle(t.Context(), Begin{ID: "1"}))
		require.ErrorContains(t, e.Handle(t.Context(), Next{ID: "1"}), "panic: boom")
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.ErrorContains(t, e.HandleTx(t.Context(), tx, Next{ID: "1"}), "panic: boom")
		require.NoError(t, tx.Rollback())
	})
}

// A handler that calls a test's FailNow ends its goroutine.
func TestHandlerThatEndsItsGoroutineFailsAndBlocksNobody(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{Workers: 1})
		require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(Scene) error { goexit(); return nil }}), "ended its goroutine")
		s.empty()
		s.begin("1", func(sc Scene) error { sc.Schedule("t", 0); return nil })
		s.script.on("t", func(Scene) error { goexit(); return nil })
		_, errs := s.sweep()
		require.Len(t, errs, 1)
		require.Len(t, s.pending("1"), 1)
	})
}

// Error policy: Handle returns what saga.Permanent marks, as it is.
func TestPermanentErrorsAreReturned(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		cause := errors.New("for good")
		require.ErrorIs(t, s.Handle(t.Context(), Begin{ID: "1", Do: func(Scene) error { return saga.Permanent(cause) }}), cause)
		s.empty()
	})
}

// Error policy: conflicts are retried, then returned.
func TestConflictsAreRetriedThenReturned(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		tries := 0
		err := s.Handle(t.Context(), Begin{ID: "1", Do: func(Scene) error { tries++; return schema.ErrConflict }})
		require.ErrorIs(t, err, schema.ErrConflict)
		require.Equal(t, 12, tries)
		s.empty()

		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		err = s.Handle(ctx, Begin{ID: "1", Do: func(Scene) error { cancel(stopped); return schema.ErrConflict }})
		require.ErrorIs(t, err, schema.ErrConflict)
		require.ErrorIs(t, err, stopped)
	})
}

// SEMANTICS 1.28, 3.7: the effects of both, whichever engine handles them.
func TestEnginesOnOneDatabaseLoseNoUpdate(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		engines := []*stage{newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})}
		engines[0].begin("1", nil)
		var wg sync.WaitGroup
		errs := make(chan error, 40)
		for i := range 40 {
			wg.Go(func() {
				errs <- engines[i%2].Handle(context.Background(), Next{ID: "1", Do: func(sc Scene) error { sc.Send(Note{}); return nil }})
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, 41, engines[0].count("1"))
		require.Len(t, engines[0].notes(), 40)
		require.EqualValues(t, 41, engines[0].instance("1").Version)
	})
}

func TestClosedEngineTakesNoEvents(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.Close()
		require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1"}), "closed")
		s.Close()
		s.empty()
	})
}

func TestQueuedEventIsNotHandledOnceItsContextEnded(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		inside, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- s.Handle(t.Context(), Next{ID: "1", Do: func(Scene) error { close(inside); <-proceed; return nil }})
		}()
		<-inside
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Handle(ctx, Next{ID: "1"}), context.DeadlineExceeded)
		close(proceed)
		require.NoError(t, <-done)
		require.Equal(t, 2, s.count("1"))
	})
}

func TestEventIDsThatCannotBeStoredAreRefused(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for id, want := range map[string]string{"\x00": "NUL", "\xff": "not UTF-8", strings.Repeat("x", 1025): "longer than 1024"} {
			require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "1"}, saga.WithID(id)), want)
		}
		s.empty()
	})
}
