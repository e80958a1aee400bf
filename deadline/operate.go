package deadline

import (
	"context"
	"fmt"
	"time"
)

const pendingColumns = `saga_type, saga_id, name, public_id, token, due_at, next_at, payload_type, payload, attempts, last_error, parked_at`

// Pending lists the deadlines of one saga, parked ones included, the next one first.
func (s *Store) Pending(ctx context.Context, sagaType, sagaID string) ([]Pending, error) {
	var out []Pending
	err := s.db.Select(ctx, &out, `SELECT `+pendingColumns+` FROM {deadline} WHERE saga_type = ? AND saga_id = ?
		ORDER BY due_at, name`, sagaType, sagaID)
	if err != nil {
		return nil, fmt.Errorf("deadline: list of %s/%s: %w", sagaType, sagaID, err)
	}
	return out, nil
}

// Parked lists parked deadlines behind after in the order of their keys, at most limit of them; an
// empty type or id means any.
func (s *Store) Parked(ctx context.Context, sagaType, sagaID string, after Key, limit int) ([]Pending, error) {
	var out []Pending
	err := s.db.Select(ctx, &out, `SELECT `+pendingColumns+` FROM {deadline} WHERE parked_at IS NOT NULL
			AND (saga_type, saga_id, name) > (?, ?, ?) AND (? = '' OR saga_type = ?) AND (? = '' OR saga_id = ?)
		ORDER BY saga_type, saga_id, name LIMIT ?`,
		after.Type, after.ID, after.Name, sagaType, sagaType, sagaID, sagaID, limit)
	if err != nil {
		return nil, fmt.Errorf("deadline: list parked: %w", err)
	}
	return out, nil
}

// Retry makes a parked deadline due again, with no attempts counted, and reports whether it was there
// still.
func (s *Store) Retry(ctx context.Context, k Key, token string, now time.Time) (bool, error) {
	return s.change(ctx, "retry", k, `UPDATE {deadline} SET parked_at = NULL, attempts = 0, next_at = ?
		WHERE saga_type = ? AND saga_id = ? AND name = ? AND token = ? AND parked_at IS NOT NULL`, now, k.Type, k.ID, k.Name, token)
}

// Discard removes a parked deadline and reports whether it was there still.
func (s *Store) Discard(ctx context.Context, k Key, token string) (bool, error) {
	return s.change(ctx, "discard", k, `DELETE FROM {deadline}
		WHERE saga_type = ? AND saga_id = ? AND name = ? AND token = ? AND parked_at IS NOT NULL`, k.Type, k.ID, k.Name, token)
}

// Cancel removes the deadline pending under a public id, parked or not, and reports whether there was one.
func (s *Store) Cancel(ctx context.Context, publicID string) (bool, error) {
	return s.change(ctx, "cancel", publicID, "DELETE FROM {deadline} WHERE public_id = ?", publicID)
}

// FireNow makes the deadline pending under a public id due at once and reports whether there was one
// that is not parked.
func (s *Store) FireNow(ctx context.Context, publicID string, now time.Time) (bool, error) {
	return s.change(ctx, "fire", publicID, "UPDATE {deadline} SET next_at = ? WHERE public_id = ? AND parked_at IS NULL", now, publicID)
}

func (s *Store) change(ctx context.Context, verb string, what any, query string, args ...any) (bool, error) {
	n, err := s.db.Exec(ctx, query, args...)
	if err != nil {
		return false, fmt.Errorf("deadline: %s %v: %w", verb, what, err)
	}
	return n > 0, nil
}
