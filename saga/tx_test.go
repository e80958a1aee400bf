package saga_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func beginTx(t *testing.T, db *schema.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestHandleTxCommitsWithTheCaller(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		act := func(sc Scene) error { sc.Schedule("t", 0); sc.Send(Note{"x"}); return nil }
		tx := beginTx(t, db)
		require.NoError(t, s.HandleTx(t.Context(), tx, Begin{ID: "1", Do: act}))
		require.NoError(t, tx.Rollback())
		s.empty()

		tx = beginTx(t, db)
		require.NoError(t, s.HandleTx(t.Context(), tx, Begin{ID: "1", Do: act}, saga.WithID("e1")))
		require.NoError(t, s.HandleTx(t.Context(), tx, Next{ID: "1"}))
		require.NoError(t, s.HandleTx(t.Context(), tx, Begin{ID: "1"}, saga.WithID("e1"))) // seen in the same transaction
		require.Empty(t, s.signal.C())                                                     // 1.41: nothing is told before the commit
		require.EqualValues(t, 1, s.Stats().Duplicates)
		require.NoError(t, tx.Commit())
		require.Equal(t, 2, s.count("1"))
		require.Equal(t, []string{"x"}, s.notes())
		s.Wake()
		require.Len(t, s.signal.C(), 1)
		require.Len(t, s.outbox.C(), 1)
		require.NoError(t, s.Handle(t.Context(), Begin{ID: "1"}, saga.WithID("e1")))
		require.Equal(t, 2, s.count("1"))
	})
}

// SEMANTICS 3.6 and the error policy: undone to the savepoint, the rest of the transaction stays.
func TestHandleTxUndoesOnlyTheSagaThatFailed(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		for _, id := range []string{"1", "2", "3"} {
			s.begin(id, func(sc Scene) error { sc.Add("tag", "x"); sc.Notes = []string{id}; return nil })
		}
		var order []string
		for what, fail := range map[string]func(Scene) error{
			"error": func(Scene) error { return errors.New("no") },
			"panic": func(Scene) error { panic("no") },
			"sql":   func(sc Scene) error { _, err := sc.Tx.ExecContext(sc, "SELECT nonsense"); return err },
		} {
			order = nil
			tx := beginTx(t, db)
			err := s.HandleTx(t.Context(), tx, Next{Tag: []string{"x"}, Do: func(sc Scene) error {
				order = append(order, sc.Notes[0])
				sc.Send(Note{what + sc.Notes[0]})
				if sc.Notes[0] == "2" {
					return fail(sc)
				}
				return nil
			}})
			require.ErrorContains(t, err, "story/2: ", what)
			require.NotContains(t, err.Error(), "story/3", what)
			require.NoError(t, tx.Commit())
			require.Equal(t, []string{"1", "2", "3"}, order) // DESIGN 5: in the order of (type, id)
		}
		require.Len(t, s.notes(), 6)
		require.Equal(t, 1, s.count("2"))
	})
}

func TestHandleTxThatEndsItsGoroutineLeavesTheTransactionUsable(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		tx, done := beginTx(t, db), make(chan struct{})
		go func() {
			defer close(done)
			_ = s.HandleTx(t.Context(), tx, Begin{ID: "1", Do: func(Scene) error { goexit(); return nil }})
		}()
		<-done
		require.NoError(t, s.HandleTx(t.Context(), tx, Begin{ID: "2"}))
		require.NoError(t, tx.Commit())
		require.Equal(t, 1, s.rows("{instance}"))
	})
}

// SEMANTICS 4.15: a cancelled statement would end the caller's whole transaction on SQLite.
func TestHandleTxOnSQLiteIsNotInterrupted(t *testing.T) {
	db := schematest.Open(t, schematest.URL(t, "sqlite"))
	s := newStage(t, db, saga.Config{})
	tx := beginTx(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, s.HandleTx(ctx, tx, Begin{ID: "1", Do: func(sc Scene) error { cancel(); return sc.Err() }}))
	require.NoError(t, tx.Commit())
	require.Equal(t, 1, s.count("1"))
}

// SEMANTICS 4.15, P-80
func TestHandleTxOnSQLiteNamesTheMendOfADeferredTransaction(t *testing.T) {
	address := schematest.URL(t, "sqlite")
	db := schematest.Open(t, address)
	s := newStage(t, db, saga.Config{})
	s.begin("1", nil)
	tx := beginTx(t, schematest.Connect(t, address+"&_txlock=deferred"))
	var n int
	require.NoError(t, tx.QueryRow(`SELECT count(*) FROM "SAGA_INSTANCE"`).Scan(&n))
	s.next("1", nil)
	err := s.HandleTx(t.Context(), tx, Next{ID: "1"})
	require.ErrorIs(t, err, schema.ErrConflict)
	require.ErrorContains(t, err, "begin it immediate (_txlock=immediate)")
	require.NoError(t, tx.Rollback())
	require.Equal(t, 2, s.count("1"))
}

// The handler's saga.Tx is the transaction itself, with the caller's driver.
func TestHandlerWritesInTheSagasTransaction(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		_, err := db.DB.Exec("CREATE TABLE account (id text, amount integer)")
		require.NoError(t, err)
		write := func(sc Scene) error {
			_, err := sc.Tx.ExecContext(sc, sc.Tx.Rebind("INSERT INTO account VALUES (?, ?)"), "a", 7)
			return err
		}
		s.begin("1", write)
		require.Error(t, s.Handle(t.Context(), Next{ID: "1", Do: func(sc Scene) error { return errors.Join(write(sc), errors.New("no")) }}))
		tx := beginTx(t, db)
		require.NoError(t, s.HandleTx(t.Context(), tx, Next{ID: "1", Do: write}))
		require.NoError(t, tx.Commit())
		require.Equal(t, 2, s.rows("account"))
	})
}

// DESIGN 5: one lock order everywhere, whatever the order of definitions.
func TestHandleTxTakesSagasInTheOrderOfTypeAndID(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var order []string
		define := func(name string) *saga.Definition {
			d, err := saga.Define[Story](name, saga.Start(func(*Story, Begin) { order = append(order, name) }, saga.By("id")))
			require.NoError(t, err)
			return d
		}
		e := newEngine(t, db, saga.Config{}, define("z"), define("a"), define("m"))
		tx := beginTx(t, db)
		require.NoError(t, e.HandleTx(t.Context(), tx, Begin{ID: "1"}))
		require.NoError(t, tx.Commit())
		require.Equal(t, []string{"a", "m", "z"}, order)
	})
}
