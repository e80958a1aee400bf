package schema_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// In a bubble a wait for the lock of another schema would use up all its tries at once.
func TestMigrationsOfDifferentSchemasDoNotWaitForEachOther(t *testing.T) {
	addresses := make([]string, 6)
	for i := range addresses {
		addresses[i] = schematest.URL(t, "postgres")
	}
	synctest.Test(t, func(t *testing.T) {
		var group errgroup.Group
		for _, address := range addresses {
			db, err := schema.Open(t.Context(), address, schema.WithProcessClock())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			group.Go(func() error { return schema.Migrate(t.Context(), db) })
		}
		require.NoError(t, group.Wait())
	})
}
