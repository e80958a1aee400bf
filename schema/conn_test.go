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

// The lease's statements run on such a connection. On Postgres the server makes them wait.
func TestReservedConnectionWaitsForALockedFile(t *testing.T) {
	address := schematest.URL(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		ctx, db, other := t.Context(), schematest.Open(t, address), schematest.Connect(t, address)
		conn, err := db.Reserve(ctx)
		require.NoError(t, err)
		for _, statement := range []func() error{
			func() error { _, err := conn.Exec(ctx, "DELETE FROM {deadline_lock}"); return err },
			func() error {
				var term int
				return conn.Get(ctx, &term, "INSERT INTO {deadline_lock} (name, holder, term, expires_at) VALUES ('l', 'h', 1, {now}) RETURNING term")
			},
		} {
			done := make(chan error, 1)
			require.NoError(t, other.Tx(ctx, func(context.Context, *schema.Tx) error {
				go func() { done <- statement() }()
				time.Sleep(time.Second)
				require.Empty(t, done)
				return nil
			}))
			require.NoError(t, <-done)
		}
		require.NoError(t, conn.Close())
	})
}
