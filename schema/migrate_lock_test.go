package schema_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestMigrationsOfDifferentSchemasDoNotWaitForEachOther(t *testing.T) {
	slow := schematest.Connect(t, schematest.URL(t, "postgres")+"&application_name=slow_migration")
	obstacle, err := slow.Begin()
	require.NoError(t, err)
	_, err = obstacle.Exec("CREATE TABLE saga_instance (id int)")
	require.NoError(t, err)
	var migrated errgroup.Group
	migrated.Go(func() error { return schema.Migrate(context.WithoutCancel(t.Context()), slow) })
	defer func() {
		require.NoError(t, obstacle.Rollback())
		require.NoError(t, migrated.Wait())
	}()
	for waiting := 0; waiting == 0; {
		require.NoError(t, slow.Get(t.Context(), &waiting, `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE NOT granted AND application_name = 'slow_migration'`))
	}

	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) { // where a wait for the lock would use up all its tries at once
		schematest.Open(t, address, schema.WithProcessClock())
	})
}
