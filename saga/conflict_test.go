package saga_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// SEMANTICS 3.7: also where no row lock stands in the way.
func TestWriteOnAnotherVersionIsAConflict(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.begin("1", nil)
		for i, act := range []Act{func(Scene) error { return nil }, end} {
			attempts := 0
			s.next("1", func(sc Scene) error {
				if attempts++; attempts == 1 {
					_, err := sc.Tx.ExecContext(sc, "UPDATE saga_instance SET version = version + 1")
					require.NoError(t, err)
				}
				return act(sc)
			})
			require.Equal(t, 2, attempts)
			require.Equal(t, i+2, s.count("1"))
		}
		require.True(t, s.instance("1").Ended)
		require.EqualValues(t, s.count("1"), s.instance("1").Version)
	})
}

// SEMANTICS 1.28: what was read while the row's lock was waited for is read again. On SQLite nothing is read
// before the write lock is held.
func TestEventWhoseAssociationWentWhileItWaitedIsNotHandled(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		a, b := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		a.begin("1", func(sc Scene) error { sc.Add("tag", "x"); return nil })
		inside, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
		go func() {
			done <- a.Handle(context.Background(), Next{ID: "1", Do: func(sc Scene) error {
				sc.Remove("tag", "x")
				close(inside)
				<-proceed
				return nil
			}}, saga.WithID("e"))
		}()
		<-inside
		called := false
		go func() {
			done <- b.Handle(context.Background(), Next{Tag: []string{"x"}, Do: func(Scene) error { called = true; return nil }})
		}()
		a.awaitLock()
		close(proceed)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.False(t, called)
		require.Equal(t, 2, a.count("1"))
		require.EqualValues(t, 1, b.Stats().Ignored)
	})
}

func TestRedeliveryThatWaitedForTheFirstDeliveryIsNotHandled(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		a, b := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		a.begin("1", nil)
		inside, proceed, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
		go func() {
			done <- a.Handle(context.Background(), Next{ID: "1", Do: func(sc Scene) error { close(inside); <-proceed; return nil }}, saga.WithID("e"))
		}()
		<-inside
		called := false
		go func() {
			done <- b.Handle(context.Background(), Next{ID: "1", Do: func(Scene) error { called = true; return nil }}, saga.WithID("e"))
		}()
		a.awaitLock()
		close(proceed)
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.False(t, called)
		require.EqualValues(t, 1, b.Stats().Duplicates)
	})
}

// awaitLock returns when a statement waits for a row of the stage's tables; on SQLite at once.
func (s *stage) awaitLock() {
	s.t.Helper()
	if s.db.Dialect() == "sqlite" {
		return
	}
	var space string
	require.NoError(s.t, s.db.DB.Get(&space, "SELECT current_schema()"))
	for waiting := ""; !strings.Contains(waiting, "FOR UPDATE"); {
		require.NoError(s.t, s.db.DB.Get(&waiting, `SELECT coalesce(string_agg(a.query, ';'), '') FROM pg_stat_activity a
			WHERE a.wait_event_type = 'Lock' AND EXISTS (SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
				JOIN pg_namespace n ON n.oid = c.relnamespace WHERE l.pid = a.pid AND n.nspname = $1)`, space))
	}
}
