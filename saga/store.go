package saga

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/norn-go/norn/schema"
)

// store reads and writes the instance, association and event tables. It never begins a transaction.
type store struct{ db *schema.DB }

// querier is a pool or a transaction.
type querier interface {
	Get(ctx context.Context, dest any, query string, args ...any) error
	Select(ctx context.Context, dest any, query string, args ...any) error
}

// candidate is a saga found by an association.
type candidate struct {
	Type  string `db:"saga_type"`
	ID    string `db:"saga_id"`
	Ended bool
}

// lookup is one (type, property, value) to look under.
type lookup struct{ sagaType, property, value string }

// find returns the sagas that hold any of the pairs, each once, in the order of (type, id).
func (s *store) find(ctx context.Context, q querier, lookups []lookup) ([]candidate, error) {
	if len(lookups) == 0 {
		return nil, nil
	}
	query, args := conditions(lookups)
	if len(lookups) > mostConditions {
		query, args = joined(lookups)
	}
	var found []candidate
	err := q.Select(ctx, &found, query, args...)
	if err != nil {
		return nil, fmt.Errorf("saga: find by association: %w", err)
	}
	return found, nil
}

// mostConditions is how many lookups are written as conditions.
const mostConditions = 64

// conditions are served by the index whatever the planner believes of the tables' size. The last lookup
// is repeated up to a power of two, so that there are few texts to prepare.
func conditions(lookups []lookup) (query string, args []any) {
	var where []string
	for i := 0; i < len(lookups) || i&(i-1) != 0; i++ {
		l := lookups[min(i, len(lookups)-1)]
		where = append(where, "(a.saga_type = ? AND a.property = ? AND a.value = ?)")
		args = append(args, l.sagaType, l.property, l.value)
	}
	return "SELECT DISTINCT a.saga_type, a.saga_id, a.ended FROM {association} a WHERE " +
		strings.Join(where, " OR ") + " ORDER BY a.saga_type, a.saga_id", args
}

// joined takes any number of lookups.
func joined(lookups []lookup) (query string, args []any) {
	rows := make(schema.Rows, len(lookups))
	for i, l := range lookups {
		rows[i] = []any{l.sagaType, l.property, l.value}
	}
	return `{unprepared} SELECT DISTINCT a.saga_type, a.saga_id, a.ended
		FROM {rows type text, property text, value text}
		JOIN {association} a ON a.saga_type = r.type AND a.property = r.property AND a.value = r.value
		ORDER BY a.saga_type, a.saga_id`, []any{rows}
}

// loaded is a saga's row under lock, and what its message must know beside it.
type loaded struct {
	State    string
	Version  int64
	Status   string
	Snapshot int64 // the version that the rest of the statement saw
	Seen     bool  // the event id was handled
	Matched  bool  // one of the pairs is still held
}

func (l *loaded) live() bool { return l != nil && l.Status == statusOpen }

const (
	statusOpen  = "open"
	statusEnded = "ended"
)

// load locks a saga's row and reads it; nil if there is none. On Postgres a row that changed while
// the lock was waited for comes back new while the rest of the statement saw the old tables; such a read is
// repeated, now under the lock.
func (s *store) load(ctx context.Context, tx *schema.Tx, key Key, eventID string, pairs []pair) (*loaded, error) {
	rows := pairRows(pairs)
	for {
		var l loaded
		err := tx.Get(ctx, &l, `SELECT i.state, i.version, i.status,
				(SELECT s.version FROM {instance} s WHERE s.saga_type = ? AND s.saga_id = ?) AS snapshot,
				EXISTS (SELECT 1 FROM {event} e WHERE e.saga_type = ? AND e.saga_id = ? AND e.event_id = ?) AS seen,
				EXISTS (SELECT 1 FROM {association} a WHERE a.saga_type = ? AND a.saga_id = ?
					AND (a.property, a.value) IN (SELECT property, value FROM {rows property text, value text})) AS matched
			FROM {instance} i WHERE i.saga_type = ? AND i.saga_id = ? {lock}`,
			key.Type, key.ID, key.Type, key.ID, eventID, key.Type, key.ID, rows, key.Type, key.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("saga: load %s: %w", key, err)
		}
		if l.Snapshot == l.Version {
			return &l, nil
		}
	}
}

// change is what an invocation does to a saga's row.
type change struct {
	key     Key
	version int64  // as loaded; 0: a new saga
	state   string // encoded
	same    bool   // the state text is as it was stored
	again   bool   // a new life begins
	ended   bool
	at      time.Time
}

// save adds the row's change to b and returns its number there; it must change one row.
func (s *store) save(b *schema.Batch, c change) int {
	status, endedAt := statusOpen, schema.Time{}
	if c.ended {
		status, endedAt = statusEnded, schema.Time{Time: c.at}
	}
	if c.version == 0 {
		return b.Add(`INSERT INTO {instance} (saga_type, saga_id, state, version, status, started_at, updated_at, ended_at)
			VALUES (?, ?, ?, 1, ?, ?, ?, ?)`, c.key.Type, c.key.ID, c.state, status, c.at, c.at, endedAt)
	}
	set, args := "version = version + 1, status = ?, updated_at = ?, ended_at = ?", []any{status, c.at, endedAt}
	if !c.same || c.again {
		set, args = set+", state = ?", append(args, c.state)
	}
	if c.again {
		set, args = set+", plan = NULL, started_at = ?", append(args, c.at)
	}
	return b.Add("UPDATE {instance} SET "+set+" WHERE saga_type = ? AND saga_id = ? AND version = ?",
		append(args, c.key.Type, c.key.ID, c.version)...)
}

// record adds the dedupe record of an event to b; one that exists makes the batch a duplicate of "event_id".
func (s *store) record(b *schema.Batch, key Key, eventID string, at time.Time) {
	b.Add("INSERT INTO {event} (saga_type, saga_id, event_id, handled_at) VALUES (?, ?, ?, ?)", key.Type, key.ID, eventID, at)
}

// associate adds pairs of a saga; the exclusive one is refused (a duplicate of "value" or "start") if
// another saga was started by it. Those of a saga that ends with its start are marked so.
func (s *store) associate(b *schema.Batch, key Key, pairs []pair, exclusive *pair, ended bool) {
	if len(pairs) == 0 {
		return
	}
	rows := make(schema.Rows, len(pairs))
	for i, p := range pairs {
		rows[i] = []any{p.property, p.value, exclusive != nil && p == *exclusive, ended}
	}
	b.Add(`INSERT INTO {association} (saga_type, saga_id, property, value, exclusive, ended)
		SELECT ?, ?, property, value, exclusive, ended FROM {rows property text, value text, exclusive bool, ended bool} WHERE true
		ON CONFLICT (saga_type, property, value, saga_id) DO UPDATE
			SET exclusive = {association}.exclusive OR excluded.exclusive, ended = excluded.ended`,
		key.Type, key.ID, rows)
}

// dissociate removes pairs of a saga.
func (s *store) dissociate(b *schema.Batch, key Key, pairs []pair) {
	if len(pairs) == 0 {
		return
	}
	b.Add(`DELETE FROM {association} WHERE saga_type = ? AND saga_id = ?
		AND (property, value) IN (SELECT property, value FROM {rows property text, value text})`, key.Type, key.ID, pairRows(pairs))
}

// dissociateAllBut removes all pairs of a saga except those given.
func (s *store) dissociateAllBut(b *schema.Batch, key Key, pairs []pair) {
	b.Add(`DELETE FROM {association} WHERE saga_type = ? AND saga_id = ?
		AND (property, value) NOT IN (SELECT property, value FROM {rows property text, value text})`, key.Type, key.ID, pairRows(pairs))
}

// dissociateEnded removes all pairs of a saga that ends but the one that started it, which leads to the
// tombstone from here on.
func (s *store) dissociateEnded(b *schema.Batch, key Key) {
	b.Add("DELETE FROM {association} WHERE saga_type = ? AND saga_id = ? AND NOT exclusive", key.Type, key.ID)
	b.Add("UPDATE {association} SET ended = true WHERE saga_type = ? AND saga_id = ? AND exclusive", key.Type, key.ID)
}

func pairRows(pairs []pair) schema.Rows {
	rows := make(schema.Rows, len(pairs))
	for i, p := range pairs {
		rows[i] = []any{p.property, p.value}
	}
	return rows
}
