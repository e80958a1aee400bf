package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/norn-go/norn/schema"
)

// Stored is a command as it lies in the table.
type Stored struct {
	Seq       int64  // where it stands; unique
	Command          // its Attempt is the one that would come next; Metadata is nil if unreadable
	LastError string // of the last failure; empty: none
	NextAt    time.Time
	ParkedAt  time.Time // zero: not parked
}

// Parked lists parked commands by seq, those behind after, at most limit; of one saga, of all sagas of
// one type, or of all when sagaID and sagaType are empty. The next page begins after the last Seq.
func (s *Store) Parked(ctx context.Context, sagaType, sagaID string, after int64, limit int) ([]Stored, error) {
	query, args := `SELECT `+rowColumns+` FROM {command} WHERE parked_at IS NOT NULL AND seq > ?`, []any{after}
	if sagaType != "" {
		query, args = query+" AND saga_type = ?", append(args, sagaType)
	}
	if sagaID != "" {
		query, args = query+" AND saga_id = ?", append(args, sagaID)
	}
	var rows []row
	if err := s.db.Select(ctx, &rows, query+" ORDER BY seq LIMIT ?", append(args, limit)...); err != nil {
		return nil, fmt.Errorf("outbox: list parked commands: %w", err)
	}
	stored := make([]Stored, len(rows))
	for i, r := range rows {
		stored[i] = r.stored()
	}
	return stored, nil
}

func (r row) stored() Stored {
	c, _ := r.command() // a row with broken metadata is listed without them
	s := Stored{Seq: r.Seq, Command: c, NextAt: r.NextAt.Time, ParkedAt: r.ParkedAt.Time}
	if r.LastError != nil {
		s.LastError = *r.LastError
	}
	return s
}

// Retry un-parks a command: it is due at once and has all its attempts again. It goes before the later
// commands of its saga that still wait. It reports false when seq is not parked (any more). A relay sees it
// at its next look; wake it with [Signal.Notify].
func (s *Store) Retry(ctx context.Context, seq int64) (bool, error) {
	n, err := s.db.Exec(ctx, "UPDATE {command} SET attempts = 0, next_at = created_at, parked_at = NULL WHERE seq = ? AND parked_at IS NOT NULL", seq)
	if err != nil {
		return false, fmt.Errorf("outbox: retry command %d: %w", seq, err)
	}
	return n > 0, nil
}

// Discard removes a parked command for good. It reports false when seq is not parked (any more).
func (s *Store) Discard(ctx context.Context, seq int64) (bool, error) {
	n, err := s.db.Exec(ctx, "DELETE FROM {command} WHERE seq = ? AND parked_at IS NOT NULL", seq)
	if err != nil {
		return false, fmt.Errorf("outbox: discard command %d: %w", seq, err)
	}
	return n > 0, nil
}

// Backlog is how much waits.
type Backlog struct {
	Pending int64     // not parked
	Parked  int64     // waiting for an operator
	Oldest  time.Time // when the oldest pending one was sent; zero: none is pending
}

// Backlog counts all commands. It reads the whole table: for people and slow gauges.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	var counts struct {
		Pending, Parked int64
		Oldest          schema.Time
	}
	err := s.db.Get(ctx, &counts, `SELECT count(*) - count(parked_at) AS pending, count(parked_at) AS parked,
		min(CASE WHEN parked_at IS NULL THEN created_at END) AS oldest FROM {command}`)
	if err != nil {
		return Backlog{}, fmt.Errorf("outbox: count commands: %w", err)
	}
	return Backlog{counts.Pending, counts.Parked, counts.Oldest.Time}, nil
}
