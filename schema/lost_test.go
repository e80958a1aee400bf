package schema_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestEveryStatementOnALostConnectionFindsTheDatabaseUnavailable(t *testing.T) {
	db := schematest.Open(t, schematest.URL(t, "postgres"))
	err := db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
		var pid int
		require.NoError(t, tx.Get(ctx, &pid, "SELECT pg_backend_pid()"))
		_, err := db.DB.Exec("SELECT pg_terminate_backend($1)", pid)
		require.NoError(t, err)
		for range 3 {
			_, err = tx.Exec(ctx, "DELETE FROM {event}")
			require.ErrorIs(t, err, schema.ErrUnavailable)
		}
		return err
	})
	require.ErrorIs(t, err, schema.ErrUnavailable)
	require.True(t, schema.Retryable(err))
	_, err = db.Exec(t.Context(), "DELETE FROM {event}")
	require.NoError(t, err)
}
