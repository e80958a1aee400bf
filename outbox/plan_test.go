package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

const many = 100_000

// fill stores many pending commands; sagaID is an expression over their number i.
func fill(t *testing.T, db *schema.DB, sagaID string, next time.Time) {
	t.Helper()
	numbers := "generate_series(1, CAST(? AS bigint)) AS n (i)"
	if db.Dialect() == "sqlite" {
		numbers = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) SELECT i FROM n) AS n"
	}
	_, err := db.Exec(t.Context(), `INSERT INTO {command} (command_id, saga_type, saga_id, type, payload, created_at, next_at)
		SELECT CAST(i AS text), 'transfer', `+sagaID+`, 'debit', '1', next, next FROM `+numbers+`, {rows next time}`, many, schema.Rows{{next}})
	require.NoError(t, err)
}

// plan is how the database runs the query of due commands; on Postgres with what it really did.
func plan(t *testing.T, db *schema.DB, sc scope, cutoff time.Time, skip []saga) string {
	t.Helper()
	query, args := dueQuery(sc, cutoff, candidate{}, skip, 100)
	var steps []struct {
		ID, Parent, Notused int
		Detail              string `db:"detail"`
		Line                string `db:"QUERY PLAN"`
	}
	explain := map[string]string{"sqlite": "EXPLAIN QUERY PLAN ", "postgres": "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "}[db.Dialect()]
	require.NoError(t, db.Select(t.Context(), &steps, explain+query, args...))
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.Detail+s.Line)
	}
	return strings.Join(lines, "\n")
}

func requireIndexed(t *testing.T, db *schema.DB, plan string) {
	t.Helper()
	if db.Dialect() == "sqlite" {
		require.Contains(t, plan, "SEARCH SAGA_COMMAND USING INDEX SAGA_COMMAND_next (next_at>? AND next_at<?)")
		require.Contains(t, plan, "INDEX SAGA_COMMAND_saga (saga_type=? AND saga_id>?)")
		require.NotContains(t, plan, "TEMP B-TREE")
		return
	}
	require.Contains(t, plan, "Index Scan using saga_command_next")
	require.Contains(t, plan, "using saga_command_saga on saga_command f")
	require.NotContains(t, plan, "Sort")
	require.NotContains(t, plan, "Seq Scan")
	require.NotContains(t, plan, "saga_command_pkey")
	require.NotRegexp(t, `(rows=|Removed by Filter: )[0-9]{4}`, plan) // it looked at a page, not at the table
}

func TestDueCommandsAreFoundByIndexAmongManyPending(t *testing.T) {
	now := time.Now()
	scopes := []scope{{anyType: true}, {types: []string{"debit", "credit"}, sagaTypes: []string{"transfer"}}}
	for name, shape := range map[string]struct {
		sagaID string
		next   time.Time
		found  int
	}{
		"all backing off": {"CAST(i AS text)", now.Add(time.Hour), 0},
		"all due":         {"CAST(i AS text)", now.Add(-time.Hour), 100},
		"of one saga":     {"'one'", now.Add(-time.Hour), 1},
	} {
		t.Run(name, func(t *testing.T) {
			schematest.Each(t, func(t *testing.T, db *schema.DB) {
				store := NewStore(db)
				fill(t, db, shape.sagaID, shape.next)
				_, err := db.DB.Exec("ANALYZE")
				require.NoError(t, err)
				for _, sc := range scopes {
					requireIndexed(t, db, plan(t, db, sc, now, []saga{{"transfer", "other"}}))
					due, err := store.due(t.Context(), sc, now, candidate{}, nil, 100)
					require.NoError(t, err)
					first := 0
					for _, c := range due {
						if c.First {
							first++
						}
					}
					require.Equal(t, shape.found, first)
				}
			})
		})
	}
}

func TestCommandsBehindAFailingOneAreNotLookedAt(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		now := time.Now()
		store := NewStore(db)
		fill(t, db, "'one'", now.Add(-time.Hour))
		w, ok, err := store.head(t.Context(), saga{"transfer", "one"})
		require.NoError(t, err)
		require.True(t, ok)
		again := now.Add(time.Minute).UTC().Truncate(time.Microsecond)
		require.NoError(t, store.failed(t.Context(), w, errors.New("closed"), again, false))

		due, err := store.due(t.Context(), scope{anyType: true}, now, candidate{}, nil, 100)
		require.NoError(t, err)
		require.Empty(t, due)
		next, err := store.next(t.Context(), scope{anyType: true}, now.Add(time.Hour), nil)
		require.NoError(t, err)
		require.Equal(t, again, next)
	})
}
