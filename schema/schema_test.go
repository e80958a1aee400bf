package schema_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestRowsAndTimesComeBackAsTheyWent(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		at := time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
		rows := schema.Rows{{"a", "x\"y", at}, {"b", nil, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)}}
		err := db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
			var b schema.Batch
			b.Add("INSERT INTO {deadline_lock} (name, holder, term, expires_at) SELECT name, COALESCE(holder, '-'), ord, at FROM {rows name text, holder text, at time} WHERE true", rows)
			b.Add("DELETE FROM {event}")
			n, err := tx.Run(ctx, &b)
			require.Equal(t, []int64{2, 0}, n)
			return err
		})
		require.NoError(t, err)
		var got []struct {
			Name, Holder string
			Term         int64
			At           schema.Time `db:"expires_at"`
		}
		require.NoError(t, db.Select(t.Context(), &got, "SELECT name, holder, term, expires_at FROM {deadline_lock} ORDER BY term"))
		require.Equal(t, "x\"y", got[0].Holder)
		require.Equal(t, at, got[0].At.Time)
		require.Equal(t, 1, got[1].At.Year())
		now, err := db.Now(t.Context())
		require.NoError(t, err)
		require.NotZero(t, now)
	})
}

func TestSavepointUndoesOnlyItsOwn(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		err := db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
			insert := "INSERT INTO {deadline_lock} (name, holder, term, expires_at) VALUES (?, 'h', 1, {now+})"
			_, err := tx.Exec(ctx, insert, "one", time.Minute)
			require.NoError(t, err)
			require.Error(t, tx.Savepoint(ctx, func() error {
				_, err := tx.Exec(ctx, insert, "two", time.Minute)
				return errors.Join(err, errors.New("no"))
			}))
			err = tx.Savepoint(ctx, func() error { _, err := tx.Exec(ctx, insert, "one", time.Minute); return err })
			require.ErrorAs(t, err, new(*schema.DuplicateError))
			return nil
		})
		require.NoError(t, err)
		var n int
		require.NoError(t, db.Get(t.Context(), &n, "SELECT count(*) FROM {deadline_lock}"))
		require.Equal(t, 1, n)
	})
}
