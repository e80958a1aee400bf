package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestCommandsAreStoredInTheOrderOfTheSlice(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		const many = 500
		commands := make([]outbox.New, many)
		want := make([]string, many)
		for i := range commands {
			want[i] = fmt.Sprintf("%d", many-i) // neither ascending nor as texts sort
			commands[i] = command("t1", want[i])
		}
		b.send(commands...)
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, want, b.of("t1"))
	})
}

func TestCommandsAreReadAsTheyWereStored(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		created := time.Date(2026, 3, 29, 1, 30, 0, 123456789, time.FixedZone("east", 3600))
		b.send(outbox.New{ID: "c'1", SagaType: `t"ü`, SagaID: "🐢'; --", Type: "debit", Payload: `{"Text":"a\u0000b 🐢"}`,
			Metadata: map[string]string{`q"`: "v\x00\n", "ü": ""}, Created: created})
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, []outbox.Command{{ID: "c'1", SagaType: `t"ü`, SagaID: "🐢'; --", Type: "debit", Payload: []byte(`{"Text":"a\u0000b 🐢"}`),
			Metadata: map[string]string{`q"`: "v\x00\n", "ü": ""}, Created: created.UTC().Truncate(time.Microsecond), Attempt: 1}}, b.seen)
	})
}

func TestPuttingNoCommandsAddsNothing(t *testing.T) {
	var batch schema.Batch
	outbox.NewStore(nil).Put(&batch, nil)
	require.Zero(t, batch.Add("SELECT 1"))
}

func TestAnIDIsStoredOnce(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		require.NoError(t, b.put(command("t1", "c1")))
		err := b.put(command("t1", "c0"), command("t2", "c1"))
		var dup *schema.DuplicateError
		require.ErrorAs(t, err, &dup)
		require.EqualValues(t, 1, b.backlog().Pending)
	})
}

func TestParkedCommandsAreListedByPageAndSaga(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, _ outbox.Command) error { return retry.Permanent(errBroken) })
		other := command("t1", "o1")
		other.SagaType = "loan"
		b.send(command("t1", "a1"), command("t2", "b1"), command("t1", "a2"), other)
		require.NoError(t, b.relay().Flush(t.Context()))

		list := func(sagaType, sagaID string, after int64, limit int) (ids []string, last int64) {
			stored, err := b.store.Parked(t.Context(), sagaType, sagaID, after, limit)
			require.NoError(t, err)
			for _, s := range stored {
				ids, last = append(ids, s.ID), s.Seq
			}
			return ids, last
		}
		first, last := list("", "", 0, 3)
		require.Equal(t, []string{"a1", "b1", "a2"}, first)
		rest, _ := list("", "", last, 3)
		require.Equal(t, []string{"o1"}, rest)
		ofType, _ := list("transfer", "", 0, 10)
		require.Equal(t, []string{"a1", "b1", "a2"}, ofType)
		ofSaga, _ := list("transfer", "t1", 0, 10)
		require.Equal(t, []string{"a1", "a2"}, ofSaga)

		p := b.parked()[0]
		require.Equal(t, errBroken.Error(), p.LastError)
		require.Equal(t, `{"Amount":1}`, string(p.Payload))
		require.Equal(t, 2, p.Attempt)
		require.False(t, p.ParkedAt.IsZero())
	})
}

func TestRetriedCommandGoesOnFromTheStart(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(failOn("a1"))
		b.send(command("t1", "a1"), command("t1", "a2"))
		r := b.relay()
		for range 3 {
			require.NoError(t, r.Flush(t.Context()))
			time.Sleep(time.Minute)
		}
		require.Equal(t, []string{"a2"}, b.of("t1"))
		seq := b.parked()[0].Seq

		b.failing(nil)
		retried, err := b.store.Retry(t.Context(), seq)
		require.NoError(t, err)
		require.True(t, retried)
		again, err := b.store.Retry(t.Context(), seq)
		require.NoError(t, err)
		require.False(t, again)
		require.Empty(t, b.parked())
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, []string{"a2", "a1"}, b.of("t1"))
		require.Equal(t, 1, b.seen[len(b.seen)-1].Attempt)
	})
}

func TestDiscardRemovesOnlyWhatIsParked(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.send(command("t1", "waiting"))
		gone, err := b.store.Discard(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, gone)

		b.failing(func(_ context.Context, _ outbox.Command) error { return retry.Permanent(errBroken) })
		require.NoError(t, b.relay().Flush(t.Context()))
		gone, err = b.store.Discard(t.Context(), b.parked()[0].Seq)
		require.NoError(t, err)
		require.True(t, gone)
		require.Equal(t, outbox.Backlog{}, b.backlog())
	})
}

func TestBacklogTellsTheAge(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		require.Equal(t, outbox.Backlog{}, b.backlog())
		sent := time.Now()
		b.failing(failOn("a1"))
		b.send(command("t1", "a1"))
		time.Sleep(time.Hour)
		b.send(command("t1", "a2"))
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, outbox.Backlog{Pending: 2, Oldest: sent.UTC().Truncate(time.Microsecond)}, b.backlog())
	})
}
