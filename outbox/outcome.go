package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/norn-go/norn/schema"
)

// head reads the first waiting command of a saga, due or not.
func (s *Store) head(ctx context.Context, of saga) (waiting, bool, error) {
	var r row
	err := s.db.Get(ctx, &r, `SELECT `+rowColumns+` FROM {command}
		WHERE saga_type = ? AND saga_id = ? AND parked_at IS NULL ORDER BY seq LIMIT 1`, of.Type, of.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return waiting{}, false, nil
	}
	if err != nil {
		return waiting{}, false, fmt.Errorf("outbox: read the next command of %s/%s: %w", of.Type, of.ID, err)
	}
	w := waiting{seq: r.Seq, attempts: r.Attempts, nextAt: r.NextAt.Time}
	w.Command, w.broken = r.command()
	return w, true, nil
}

// delivered removes a command after its delivery. Removing it again changes nothing.
func (s *Store) delivered(ctx context.Context, seq int64) error {
	if _, err := s.db.Exec(ctx, "DELETE FROM {command} WHERE seq = ?", seq); err != nil {
		return fmt.Errorf("outbox: remove delivered command: %w", err)
	}
	return nil
}

// pushedAtOnce bounds the rows of one statement, so that no other writer waits long for it.
const pushedAtOnce = 5000

// failed records that w failed: one attempt more, the error, and the time of the next or that it is
// parked. Unless it is parked, the later commands of the saga, which have to wait for it, are put off
// until then, so that the relay does not walk over them again and again. If the row is not as it was read,
// nothing changes.
func (s *Store) failed(ctx context.Context, w waiting, cause error, at time.Time, park bool) error {
	parked := schema.Time{}
	if park {
		parked.Time = at
	}
	n, err := s.db.Exec(ctx, `UPDATE {command} SET attempts = attempts + 1, last_error = ?, next_at = ?, parked_at = ?
		WHERE seq = ? AND attempts = ? AND parked_at IS NULL`, schema.Excerpt(cause), at, parked, w.seq, w.attempts)
	pushed := int64(pushedAtOnce)
	for err == nil && n > 0 && !park && pushed == pushedAtOnce {
		pushed, err = s.db.Exec(ctx, `UPDATE {command} SET next_at = ? WHERE seq IN (SELECT seq FROM {command}
				WHERE saga_type = ? AND saga_id = ? AND parked_at IS NULL AND seq > ? AND next_at < ? LIMIT ?)`,
			at, w.SagaType, w.SagaID, w.seq, at, pushedAtOnce)
	}
	if err != nil {
		return fmt.Errorf("outbox: record failure of command %s: %w", w.ID, err)
	}
	return nil
}
