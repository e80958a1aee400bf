package deadline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/norn-go/norn/schema"
)

// Store reads and writes the deadline table. Methods that are part of a saga's invocation take its
// batch or transaction and never begin one.
type Store struct{ db *schema.DB }

// NewStore makes a store on d.
func NewStore(d *schema.DB) *Store { return &Store{d} }

// Remove adds to b the removal of the named deadlines of one saga, parked or not.
func (s *Store) Remove(b *schema.Batch, sagaType, sagaID string, names []string) {
	if len(names) == 0 {
		return
	}
	b.Add("DELETE FROM {deadline} WHERE saga_type = ? AND saga_id = ? AND name IN (SELECT name FROM {rows name text})", sagaType, sagaID, schema.Column(names))
}

// RemoveAll adds to b the removal of all deadlines of a saga that ends, except those kept on end.
func (s *Store) RemoveAll(b *schema.Batch, sagaType, sagaID string) {
	b.Add("DELETE FROM {deadline} WHERE saga_type = ? AND saga_id = ? AND NOT keep_on_end", sagaType, sagaID)
}

// Put adds to b the deadlines; one that is pending under the same key is replaced.
func (s *Store) Put(b *schema.Batch, deadlines []New) {
	if len(deadlines) == 0 {
		return
	}
	rows := make(schema.Rows, len(deadlines))
	for i, d := range deadlines {
		rows[i] = []any{d.Type, d.ID, d.Name, d.Token, d.PublicID, d.Due, text(d.PayloadType), text(d.Payload)}
	}
	if s.db.Dialect() == "sqlite" { // its unique indexes are checked row by row: names may exchange public ids
		b.Add("DELETE FROM {deadline} WHERE (saga_type, saga_id, name) IN (SELECT type, id, name FROM {rows type text, id text, name text})", keys(deadlines))
	}
	b.Add(`INSERT INTO {deadline} (saga_type, saga_id, name, token, public_id, due_at, next_at, payload_type, payload)
		SELECT type, id, name, token, public_id, due, due, payload_type, payload
		FROM {rows type text, id text, name text, token text, public_id text, due time, payload_type text, payload text} WHERE true
		ON CONFLICT (saga_type, saga_id, name) DO UPDATE SET
			token = excluded.token, public_id = excluded.public_id, mode = 'handler', keep_on_end = false,
			due_at = excluded.due_at, next_at = excluded.next_at, payload_type = excluded.payload_type, payload = excluded.payload,
			metadata = NULL, attempts = 0, last_error = NULL, parked_at = NULL`, rows)
}

func keys(deadlines []New) schema.Rows {
	rows := make(schema.Rows, len(deadlines))
	for i, d := range deadlines {
		rows[i] = []any{d.Type, d.ID, d.Name}
	}
	return rows
}

func text(s *string) sql.NullString {
	if s == nil {
		return sql.NullString{}
	}
	return sql.NullString{String: *s, Valid: true}
}

// Claim removes d inside tx if it is still the deadline that was swept. It reports false when d was
// cancelled, rescheduled or fired by another node in the meantime; the caller then has nothing to do.
func (s *Store) Claim(ctx context.Context, tx *schema.Tx, d Due) (Claimed, bool, error) {
	claimed := Claimed{Due: d}
	err := tx.Get(ctx, &claimed, `DELETE FROM {deadline} WHERE saga_type = ? AND saga_id = ? AND name = ? AND token = ? AND parked_at IS NULL
		RETURNING due_at, next_at, attempts, public_id, payload_type, payload`, d.Type, d.ID, d.Name, d.Token)
	if errors.Is(err, sql.ErrNoRows) {
		return Claimed{}, false, nil
	}
	if err != nil {
		return Claimed{}, false, fmt.Errorf("deadline: claim %s: %w", d.Key, err)
	}
	return claimed, true, nil
}
