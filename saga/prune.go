package saga

import (
	"context"
	"time"

	"github.com/norn-go/norn/schema"
)

// pruneEvents forgets at most limit event ids that were handled before the cutoff.
func (s *store) pruneEvents(ctx context.Context, cutoff time.Time, limit int) (int64, error) {
	return s.db.Exec(ctx, `DELETE FROM {event} WHERE (saga_type, saga_id, event_id) IN
		(SELECT saga_type, saga_id, event_id FROM {event} WHERE handled_at < ? ORDER BY handled_at LIMIT ?) AND handled_at < ?`,
		cutoff, limit, cutoff)
}

// pruneEnded removes at most limit tombstones that ended before the cutoff and have neither deadlines nor
// commands left, with the pairs that started them.
func (s *store) pruneEnded(ctx context.Context, cutoff time.Time, limit int) (n int64, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		var gone []candidate
		err := tx.Select(ctx, &gone, `DELETE FROM {instance} WHERE (saga_type, saga_id) IN (
				SELECT i.saga_type, i.saga_id FROM {instance} i WHERE i.status = 'ended' AND i.ended_at < ?
					AND NOT EXISTS (SELECT 1 FROM {deadline} d WHERE d.saga_type = i.saga_type AND d.saga_id = i.saga_id)
					AND NOT EXISTS (SELECT 1 FROM {command} c WHERE c.saga_type = i.saga_type AND c.saga_id = i.saga_id)
				ORDER BY i.ended_at LIMIT ?)
			AND status = 'ended' AND ended_at < ? RETURNING saga_type, saga_id`, cutoff, limit, cutoff)
		if err != nil || len(gone) == 0 {
			return err
		}
		rows := make(schema.Rows, len(gone))
		for i, c := range gone {
			rows[i] = []any{c.Type, c.ID}
		}
		n = int64(len(gone))
		_, err = tx.Exec(ctx, "DELETE FROM {association} WHERE (saga_type, saga_id) IN (SELECT type, id FROM {rows type text, id text})", rows)
		return err
	})
	return n, err
}
