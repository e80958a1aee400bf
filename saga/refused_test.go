package saga_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// TestP65RacingStartsLoseNothingWhateverTheTablesAreCalled holds also where a table's name contains that of a column.
func TestP65RacingStartsLoseNothingWhateverTheTablesAreCalled(t *testing.T) {
	for _, name := range schematest.Databases {
		for _, prefix := range []string{"event_id_", "x_public_id_", "command_id_", "MiXed_"} {
			t.Run(name+"/"+prefix, func(t *testing.T) {
				db := schematest.Open(t, schematest.URL(t, name), schema.WithNames(schema.Names{Prefix: prefix}))
				first, second := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
				for i := range 20 {
					id := fmt.Sprint(i)
					var racing sync.WaitGroup
					for _, s := range []*stage{first, second} {
						racing.Go(func() {
							if err := s.Handle(t.Context(), Begin{ID: id}); err != nil {
								t.Errorf("start %s: %v", id, err)
							}
						})
					}
					racing.Wait()
					require.Equal(t, 2, first.count(id), "both events are handled: one starts the saga, the other finds it")
				}
			})
		}
	}
}

func TestRefusalByTheApplicationsOwnTableIsAnErrorAndNoRedelivery(t *testing.T) {
	db := schematest.Open(t, schematest.URL(t, "postgres")) // SQLite checks no unique index at the commit
	s := newStage(t, db, saga.Config{})
	s.exec("CREATE TABLE paid (event_id text, CONSTRAINT paid_event_id UNIQUE (event_id) DEFERRABLE INITIALLY DEFERRED)")
	s.begin("a", nil)
	pay := func(scene Scene) error {
		_, err := scene.Tx.ExecContext(scene, "INSERT INTO paid VALUES ('x')")
		return err
	}
	s.next("a", pay)
	require.ErrorContains(t, s.Handle(t.Context(), Next{ID: "a", Do: pay}), "paid_event_id")
	require.ErrorContains(t, s.Handle(t.Context(), Begin{ID: "b", Do: pay}), "paid_event_id")
	require.Equal(t, 2, s.count("a"))
	require.Equal(t, 1, s.rows("{instance}"))
	require.Zero(t, s.Stats().Duplicates)
}
