package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/schema"
)

const (
	seconds = time.Second
	backlog = 10_000
)

// BenchmarkDrain fires 10,000 due deadlines of as many sagas; one operation is the whole backlog.
func BenchmarkDrain(b *testing.B) {
	databases(b, func(b *testing.B, db *schema.DB) {
		e := newEngine(b, db)
		start(b, e, "d", backlog)
		p, err := poller.New(deadline.NewStore(db), lease.New(db, "bench", lease.Config{}), e, poller.Config{Now: e.Now, Logger: quiet()})
		require.NoError(b, err)
		hand := byHand{db}
		for _, who := range []string{"hand", "engine"} {
			b.Run(who, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					arm(b, db)
					b.StartTimer()
					if who == "engine" {
						require.NoError(b, p.Sweep(context.Background()))
					} else {
						hand.drain(b)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/backlog, "ns/deadline")
				var left int
				require.NoError(b, db.Get(context.Background(), &left, "SELECT count(*) FROM {deadline} WHERE saga_id LIKE 'd%'"))
				require.Zero(b, left)
			})
		}
	})
}

// arm makes every saga's deadline due again.
func arm(b *testing.B, db *schema.DB) {
	_, err := db.Exec(context.Background(), `INSERT INTO {deadline} (saga_type, saga_id, name, token, public_id, due_at, next_at)
		SELECT saga_type, saga_id, 'expiry', saga_id, saga_id, r.at, r.at FROM {instance}, {rows at time}
		WHERE saga_id LIKE 'd%' ON CONFLICT (saga_type, saga_id, name) DO NOTHING`, schema.Rows{{time.Now().Add(-time.Minute)}})
	require.NoError(b, err)
}

// drain reads the due rows a hundred at a time and fires each in a transaction of its own, eight at once.
func (h byHand) drain(b *testing.B) {
	ctx := context.Background()
	for {
		var due []struct {
			ID string `db:"saga_id"`
		}
		require.NoError(b, h.db.Select(ctx, &due, "SELECT saga_id FROM {deadline} WHERE parked_at IS NULL AND next_at <= ? ORDER BY next_at, saga_type, saga_id, name LIMIT 100", time.Now()))
		parallel(len(due), func(i int) { require.NoError(b, h.fire(ctx, due[i].ID)) })
		if len(due) < 100 {
			return
		}
	}
}

func (h byHand) fire(ctx context.Context, id string) error {
	return h.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		state, err := h.load(ctx, tx, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM {deadline} WHERE saga_type = 'order' AND saga_id = ? AND name = 'expiry'", id); err != nil {
			return err
		}
		state.Paid = -1
		var b schema.Batch
		h.save(&b, id, state)
		_, err = tx.Run(ctx, &b)
		return err
	})
}
