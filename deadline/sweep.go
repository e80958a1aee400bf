package deadline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/norn-go/norn/schema"
)

// Sweep says which due deadlines are wanted.
type Sweep struct {
	Kinds  []Kind    // what this build can fire; others are left alone
	Cutoff time.Time // due at this time or before
	After  *Due      // nil: from the beginning; else behind this one
	Skip   []string  // tokens of what is in flight
	Limit  int
}

// Find reads due deadlines that are not parked, ordered by their next attempt, ties by key. It
// changes nothing and reads no payloads.
func (s *Store) Find(ctx context.Context, w Sweep) ([]Due, error) {
	after := Due{}
	if w.After != nil {
		after = *w.After
	}
	var due []Due
	err := s.db.Select(ctx, &due, `{unprepared} SELECT saga_type, saga_id, name, token, due_at, next_at, attempts FROM {deadline}
		WHERE parked_at IS NULL AND next_at <= ? AND (next_at, saga_type, saga_id, name) > (?, ?, ?, ?)
			AND (saga_type, name) IN (SELECT type, name FROM {rows type text, name text})
			AND token NOT IN (SELECT token FROM {rows token text})
		ORDER BY next_at, saga_type, saga_id, name LIMIT ?`,
		w.Cutoff, after.NextAt.Time, after.Type, after.ID, after.Name, kindRows(w.Kinds), schema.Column(w.Skip), w.Limit)
	if err != nil {
		return nil, fmt.Errorf("deadline: find due: %w", err)
	}
	return due, nil
}

// Next is the earliest time at which a deadline of the given kinds wants attention, those in flight
// left out, and whether there is one.
func (s *Store) Next(ctx context.Context, kinds []Kind, skip []string) (next time.Time, ok bool, err error) {
	var at schema.Time
	err = s.db.Get(ctx, &at, `{unprepared} SELECT next_at FROM {deadline} WHERE parked_at IS NULL
			AND (saga_type, name) IN (SELECT type, name FROM {rows type text, name text})
			AND token NOT IN (SELECT token FROM {rows token text})
		ORDER BY next_at LIMIT 1`, kindRows(kinds), schema.Column(skip))
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("deadline: next due: %w", err)
	}
	return at.Time, true, nil
}

// Fail records that d's handler failed: one attempt more, the error, and either the time of the next
// attempt or, without one, that d is parked. It touches d only while it is still the one that was
// swept, and its attempts those that were counted then, and reports whether it was: of two nodes, or of a
// statement that the pool sends twice because its answer was lost, one attempt counts.
func (s *Store) Fail(ctx context.Context, d Due, cause error, next time.Time, park bool) (bool, error) {
	n, err := s.db.Exec(ctx, `UPDATE {deadline} SET attempts = attempts + 1, last_error = ?, next_at = ?, parked_at = ?
		WHERE saga_type = ? AND saga_id = ? AND name = ? AND token = ? AND attempts = ? AND parked_at IS NULL`,
		schema.Excerpt(cause), next, parkedAt(next, park), d.Type, d.ID, d.Name, d.Token, d.Attempts)
	if err != nil {
		return false, fmt.Errorf("deadline: record failure of %s: %w", d.Key, err)
	}
	return n > 0, nil
}

func parkedAt(now time.Time, park bool) schema.Time {
	if park {
		return schema.Time{Time: now}
	}
	return schema.Time{}
}

// Foreign lists the kinds of due deadlines that this build does not know, so that they can be
// reported. It looks at no more than the first thousand due rows.
func (s *Store) Foreign(ctx context.Context, kinds []Kind, cutoff time.Time) ([]Kind, error) {
	var foreign []Kind
	err := s.db.Select(ctx, &foreign, `{unprepared} SELECT DISTINCT saga_type AS "type", name FROM (SELECT saga_type, name FROM {deadline}
			WHERE parked_at IS NULL AND next_at <= ? ORDER BY next_at LIMIT 1000) AS due
		WHERE (saga_type, name) NOT IN (SELECT type, name FROM {rows type text, name text})`, cutoff, kindRows(kinds))
	if err != nil {
		return nil, fmt.Errorf("deadline: find foreign: %w", err)
	}
	return foreign, nil
}

func kindRows(kinds []Kind) schema.Rows {
	rows := make(schema.Rows, len(kinds))
	for i, k := range kinds {
		rows[i] = []any{k.Type, k.Name}
	}
	return rows
}
