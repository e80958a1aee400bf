package schema_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestP81WriteBesideItsOwnTransactionEndsInAConflict(t *testing.T) {
	address := schematest.URL(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		db := schematest.Open(t, address, schema.WithProcessClock())
		err := db.Tx(t.Context(), func(context.Context, *schema.Tx) error {
			_, err := db.Exec(context.Background(), "DELETE FROM {deadline}")
			return err
		})
		require.ErrorIs(t, err, schema.ErrConflict)
		_, err = db.Exec(t.Context(), "DELETE FROM {deadline}")
		require.NoError(t, err)
	})
}
