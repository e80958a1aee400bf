package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
)

const sagas = 1000

// BenchmarkEvent handles one event of an existing saga, one after the other and by eight callers at once.
func BenchmarkEvent(b *testing.B) {
	databases(b, func(b *testing.B, db *schema.DB) {
		e := newEngine(b, db)
		start(b, e, "e", sagas)
		hand := byHand{db}
		handle := map[string]func(i int64) error{
			"engine": func(i int64) error { return e.Handle(context.Background(), paid{fmt.Sprint("e", i%sagas)}) },
			"hand":   func(i int64) error { return hand.event(context.Background(), fmt.Sprint("e", i%sagas), i) },
		}
		for _, who := range []string{"hand", "engine"} {
			b.Run("serial/"+who, func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, handle[who](next.Add(1)))
				}
			})
			b.Run("parallel/"+who, func(b *testing.B) {
				b.SetParallelism(4)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := handle[who](next.Add(1)); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	})
}

var next atomic.Int64

func parallel(n int, work func(i int)) {
	var wg sync.WaitGroup
	var taken atomic.Int64
	for range 8 {
		wg.Go(func() {
			for i := int(taken.Add(1)); i <= n; i = int(taken.Add(1)) {
				work(i - 1)
			}
		})
	}
	wg.Wait()
}

// byHand says the statements that an event and a due deadline need, as someone would write them without norn,
// prepared like the engine's.
type byHand struct{ db *schema.DB }

func (h byHand) event(ctx context.Context, order string, i int64) error {
	var found struct {
		ID string `db:"saga_id"`
	}
	err := h.db.Get(ctx, &found, "SELECT saga_id FROM {association} WHERE saga_type = 'order' AND property = 'orderId' AND value = ?", order)
	if err != nil {
		return err
	}
	return h.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		state, err := h.load(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		state.Paid++
		var b schema.Batch
		h.save(&b, found.ID, state)
		b.Add("INSERT INTO {event} (saga_type, saga_id, event_id, handled_at) VALUES ('order', ?, ?, {now+})", found.ID, fmt.Sprint("by-hand-", i), 0*seconds)
		_, err = tx.Run(ctx, &b)
		return err
	})
}

func (h byHand) load(ctx context.Context, tx *schema.Tx, id string) (state orders, err error) {
	var row struct{ State string }
	if err := tx.Get(ctx, &row, "SELECT state FROM {instance} WHERE saga_type = 'order' AND saga_id = ? {lock}", id); err != nil {
		return state, err
	}
	return state, json.Unmarshal([]byte(row.State), &state)
}

func (h byHand) save(b *schema.Batch, id string, state orders) {
	text, _ := json.Marshal(state)
	b.Add("UPDATE {instance} SET state = ?, version = version + 1, updated_at = {now+} WHERE saga_type = 'order' AND saga_id = ?", string(text), 0*seconds, id)
}
