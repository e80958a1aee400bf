package deadline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestFailureThatTwoNodesRecordCountsOnce(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		ctx, store, now := t.Context(), deadline.NewStore(db), schema.Microseconds(time.Now())
		key := deadline.Key{Type: "order", ID: "o1", Name: "expiry"}
		require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
			var b schema.Batch
			store.Put(&b, []deadline.New{{Key: key, Token: "t", PublicID: "p", Due: now}})
			_, err := tx.Run(ctx, &b)
			return err
		}))
		due, err := store.Find(ctx, deadline.Sweep{Kinds: []deadline.Kind{{Type: key.Type, Name: key.Name}}, Cutoff: now, Limit: 10})
		require.NoError(t, err)
		require.Len(t, due, 1)

		for _, first := range []bool{true, false} {
			there, err := store.Fail(ctx, due[0], errors.New("no"), now.Add(time.Minute), false)
			require.NoError(t, err)
			require.Equal(t, first, there)
		}
		pending, err := store.Pending(ctx, key.Type, key.ID)
		require.NoError(t, err)
		require.Equal(t, 1, pending[0].Attempts)
	})
}
