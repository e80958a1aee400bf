package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func putOne(t testing.TB, db *schema.DB, commands ...New) {
	t.Helper()
	require.NoError(t, db.Tx(context.Background(), func(ctx context.Context, tx *schema.Tx) error {
		var batch schema.Batch
		NewStore(db).Put(&batch, commands)
		_, err := tx.Run(ctx, &batch)
		return err
	}))
}

func TestAnAttemptThatTwoRelaysMadeCountsOnce(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		now := time.Now()
		store, of := NewStore(db), saga{"transfer", "t1"}
		putOne(t, db, New{ID: "c1", SagaType: of.Type, SagaID: of.ID, Type: "debit", Payload: "1", Created: now})
		read, ok, err := store.head(t.Context(), of)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, store.failed(t.Context(), read, errors.New("first"), now.Add(time.Second), false))
		require.NoError(t, store.failed(t.Context(), read, errors.New("second"), now.Add(time.Hour), true))

		after, ok, err := store.head(t.Context(), of)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 1, after.attempts)
		require.Equal(t, now.Add(time.Second).UTC().Truncate(time.Microsecond), after.nextAt)

		require.NoError(t, store.failed(t.Context(), after, errors.New("third"), now, true))
		require.NoError(t, store.failed(t.Context(), after, errors.New("fourth"), now, false))
		parked, err := store.Parked(t.Context(), "", "", 0, 10)
		require.NoError(t, err)
		require.Len(t, parked, 1)
		require.Equal(t, "third", parked[0].LastError)
	})
}

func BenchmarkRelay(b *testing.B) {
	for _, name := range schematest.Databases {
		for _, sagas := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/sagas=%d", name, sagas), func(b *testing.B) { benchmark(b, name, sagas) })
		}
	}
}

func benchmark(b *testing.B, database string, sagas int) {
	ctx := b.Context()
	db, err := schema.Open(ctx, schematest.URL(b, database))
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	require.NoError(b, schema.Migrate(ctx, db))
	commands := make([]New, b.N)
	for i := range commands {
		commands[i] = New{ID: fmt.Sprint(i), SagaType: "transfer", SagaID: fmt.Sprint(i % sagas), Type: "debit", Payload: "{}", Created: time.Now()}
	}
	putOne(b, db, commands...)
	quiet := slog.New(slog.DiscardHandler)
	sink := SinkFunc(func(context.Context, Command) error { return nil })
	r, err := NewRelay(NewStore(db), lease.New(db, "relay", lease.Config{Logger: quiet}), Config{Sink: sink, Logger: quiet})
	require.NoError(b, err)
	b.ResetTimer()
	require.NoError(b, r.Flush(ctx))
	b.StopTimer()
	require.EqualValues(b, b.N, r.Stats().Delivered)
}
