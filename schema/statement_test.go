package schema_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

const connections = 4

// everywhere prepares the query on all connections of the pool.
func everywhere(t *testing.T, db *schema.DB, query string) {
	t.Helper()
	var n int
	require.NoError(t, db.Get(t.Context(), &n, query))
	var nest func(ctx context.Context, left int) error
	nest = func(ctx context.Context, left int) error {
		return db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
			if err := tx.Get(ctx, &n, query); err != nil || left == 1 {
				return err
			}
			return nest(ctx, left-1)
		})
	}
	require.NoError(t, nest(t.Context(), connections))
}

// Closing a statement waits for whatever runs on a connection that has it prepared.
func TestRenewedStatementDoesNotWaitForAQueryThatWaitsForALock(t *testing.T) {
	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) {
		ctx, db := t.Context(), schematest.Open(t, address, schema.WithProcessClock(), schema.WithMaxOpen(connections))
		const query = "SELECT count(*) FROM {event}"
		use := func(ctx context.Context) {
			var n int
			require.NoError(t, db.Get(ctx, &n, query))
		}
		everywhere(t, db, query)

		begun, block, blocked := make(chan int), make(chan struct{}), make(chan error)
		go func() {
			blocked <- db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
				var pid int
				if err := tx.Get(ctx, &pid, "SELECT pg_backend_pid()"); err != nil {
					return err
				}
				begun <- pid
				<-block
				_, err := tx.ExecContext(ctx, "LOCK TABLE saga_history")
				return err
			})
		}()
		pid := <-begun
		time.Sleep(2 * time.Second)
		use(ctx) // the second statement
		time.Sleep(3 * time.Second)

		obstacle, err := db.Begin()
		require.NoError(t, err)
		_, err = obstacle.Exec("LOCK TABLE saga_history")
		require.NoError(t, err)
		close(block)
		for waiting := 0; waiting == 0; {
			require.NoError(t, obstacle.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1", pid).Scan(&waiting))
		}
		use(ctx) // the third, which retires the first

		require.NoError(t, obstacle.Rollback())
		require.NoError(t, <-blocked)
	})
}
