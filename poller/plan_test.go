package poller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
)

func TestP59SweepReadsThroughThePartialIndexAndSortsNothing(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		for _, prefix := range []string{"a", "b", "c", "d"} {
			put(t, db, time.Now().Add(24*time.Hour), ids(prefix, 5000)...)
		}
		put(t, db, time.Now(), ids("due", 5)...)
		_, err := db.DB.Exec("ANALYZE")
		require.NoError(t, err)
		n := newNode(t, db)
		stop := n.run(t)
		tap.take("")
		time.Sleep(interval)
		put(t, db, time.Now(), ids("more", 5)...)
		time.Sleep(interval)
		stop()
		reads := tap.take("next_at")
		seen := map[string]bool{}
		for _, read := range reads {
			if strings.HasPrefix(strings.TrimSpace(read.text), "SELECT") && !seen[read.text] {
				seen[read.text] = true
				plan := explain(t, db, read)
				require.Contains(t, plan, "saga_deadline_next", read.text)
				for _, slow := range []string{"seq scan on saga_deadline", "temp b-tree for order by", "scan saga_deadline\n"} {
					require.NotContains(t, plan, slow, read.text)
				}
			}
		}
		require.Len(t, seen, 3) // what is due, when the next one is, what is foreign
	})
}

// explain is the plan of a statement in lower case, one step a line.
func explain(t *testing.T, db *schema.DB, s statement) string {
	t.Helper()
	verb := map[string]string{"sqlite": "EXPLAIN QUERY PLAN ", "postgres": "EXPLAIN "}[db.Dialect()]
	rows, err := db.DB.Query(verb+s.text, s.args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	var plan strings.Builder
	for rows.Next() {
		var step string
		into := make([]any, len(columns))
		for i := range into {
			into[i] = new(any)
		}
		into[len(into)-1] = &step
		require.NoError(t, rows.Scan(into...))
		plan.WriteString(strings.ToLower(step) + "\n")
	}
	require.NoError(t, rows.Err())
	return plan.String()
}
