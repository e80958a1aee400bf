package saga_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// TestP14HandlerThatEndsItsTransactionHasNoEffect is about the removal of a deadline and its effects, which such a
// handler would tear apart.
func TestP14HandlerThatEndsItsTransactionHasNoEffect(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		for _, words := range []string{"ROLLBACK", "COMMIT", "SELECT 1; ROLLBACK; BEGIN"} {
			for how, say := range map[string]func(Scene) error{
				"exec":   func(s Scene) error { _, err := s.Tx.ExecContext(s, words); return err },
				"query":  func(s Scene) error { return closed(s.Tx.QueryContext(s, words)) },
				"select": func(s Scene) error { return sqlx.SelectContext(s, s.Tx, &[]int{}, words) },
				"get":    func(s Scene) error { return sqlx.GetContext(s, s.Tx, new(int), words) },
			} {
				s := newStage(t, db, saga.Config{})
				id := how + words
				end := func(scene Scene) error {
					scene.Send(Note{id})
					require.Error(t, say(scene))
					return nil
				}
				s.begin(id, func(scene Scene) error { scene.Schedule("t", 0); return nil })
				s.script.on("t", end)
				_, errs := s.sweep()
				require.Len(t, errs, 1)
				require.ErrorIs(t, errs[0], schema.ErrEnded)
				require.ErrorIs(t, s.Handle(t.Context(), Next{ID: id, Do: end}), schema.ErrEnded)
				require.ErrorIs(t, s.Handle(t.Context(), Begin{ID: "new", Do: end}), schema.ErrEnded)
				require.Equal(t, 1, s.count(id))
				require.Equal(t, []string{"t"}, s.names(id))
				require.Empty(t, s.notes())

				s.script.on("t", nil)
				_, errs = s.sweep()
				require.Empty(t, errs)
			}
		}
	})
}

func closed(rows *sql.Rows, err error) error {
	if err == nil {
		err = rows.Close()
	}
	return err
}

func TestTransactionThatSQLiteRollsBackByItselfHasNoEffect(t *testing.T) {
	db := schematest.Open(t, schematest.URL(t, "sqlite"))
	s := newStage(t, db, saga.Config{})
	s.exec("CREATE TABLE seen (id text PRIMARY KEY ON CONFLICT ROLLBACK)")
	s.exec("INSERT INTO seen VALUES ('a')")
	s.begin("a", func(scene Scene) error { scene.Schedule("t", 0); return nil })
	s.script.on("t", func(scene Scene) error {
		_, err := scene.Tx.ExecContext(scene, "INSERT INTO seen VALUES ('a')")
		require.Error(t, err)
		scene.Send(Note{"seen before, never mind"})
		return nil
	})
	_, errs := s.sweep()
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], schema.ErrEnded)
	require.Equal(t, 1, s.count("a"))
	require.Equal(t, []string{"t"}, s.names("a"))
	require.Empty(t, s.notes())
}

func TestHandlersUseSavepointsAndRowsOfTheirTransaction(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.exec("CREATE TABLE mine (id text)")
		s.begin("a", func(scene Scene) error {
			for _, query := range []string{"INSERT INTO mine VALUES ('kept')", "SAVEPOINT a", "INSERT INTO mine VALUES ('undone')", "ROLLBACK TO SAVEPOINT a"} {
				if _, err := scene.Tx.ExecContext(scene, query); err != nil {
					return err
				}
			}
			return sqlx.SelectContext(scene, scene.Tx, &scene.Notes, "SELECT id FROM mine")
		})
		require.Contains(t, string(s.instance("a").State), `"kept"`)
		require.Equal(t, 1, s.rows("mine"))
	})
}

func TestTransactionUsedAfterItsHandlerIsRefused(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		var kept saga.Tx
		s.begin("a", func(scene Scene) error { kept = scene.Tx; return nil })
		_, err := kept.ExecContext(t.Context(), "DELETE FROM nothing")
		require.True(t, err != nil && strings.Contains(err.Error(), "after the handler returned"), err)
	})
}
