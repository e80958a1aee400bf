package saga

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/schema"
)

// Instance is a stored saga as it was at one version.
type Instance struct {
	Key
	State     json.RawMessage // as the codec wrote it
	Version   int64           // +1 with each commit that concerns the saga
	Ended     bool            // a tombstone
	StartedAt time.Time       // of this life
	UpdatedAt time.Time
	EndedAt   time.Time // zero: live
}

// Query selects sagas or parked work. The zero Query selects all.
type Query struct {
	Type   string // of one saga type
	ID     string // of one saga
	Status Status // Any, Live or Ended; of instances only
}

// Status selects sagas by where they are in their life.
type Status int

// The sagas that a [Query] selects.
const (
	Any Status = iota
	Live
	Ended
)

type instanceRow struct {
	Type      string `db:"saga_type"`
	ID        string `db:"saga_id"`
	State     string
	Version   int64
	Status    string
	StartedAt schema.Time `db:"started_at"`
	UpdatedAt schema.Time `db:"updated_at"`
	EndedAt   schema.Time `db:"ended_at"`
}

func (r instanceRow) instance() Instance {
	return Instance{
		Key: Key{r.Type, r.ID}, State: json.RawMessage(r.State), Version: r.Version, Ended: r.Status == statusEnded,
		StartedAt: r.StartedAt.Time, UpdatedAt: r.UpdatedAt.Time, EndedAt: r.EndedAt.Time,
	}
}

const instanceColumns = "saga_type, saga_id, state, version, status, started_at, updated_at, ended_at"

// Instance reads one saga, tombstones included; without one it is [ErrNotFound].
func (e *Engine) Instance(ctx context.Context, key Key) (Instance, error) {
	if !storedText(key.Type, key.ID) {
		return Instance{}, fmt.Errorf("saga: %q: %w", key, ErrNotFound)
	}
	var row instanceRow
	err := e.db.Get(ctx, &row, "SELECT "+instanceColumns+" FROM {instance} WHERE saga_type = ? AND saga_id = ?", key.Type, key.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return Instance{}, fmt.Errorf("saga: %s: %w", key, ErrNotFound)
	}
	if err != nil {
		return Instance{}, fmt.Errorf("saga: read %s: %w", key, err)
	}
	return row.instance(), nil
}

// page is how many rows the iterators read at once.
const page = 500

// Instances iterates the sagas of a query in the order of (type, id). It reads them by pages, each as of
// the time it is read; an error ends the iteration.
func (e *Engine) Instances(ctx context.Context, q Query) iter.Seq2[Instance, error] {
	status := map[Status]string{Live: statusOpen, Ended: statusEnded}[q.Status]
	if !storedText(q.Type, q.ID) {
		return none[Instance]
	}
	return paged(func(after Instance) ([]Instance, error) {
		var rows []instanceRow
		err := e.db.Select(ctx, &rows, "SELECT "+instanceColumns+` FROM {instance} WHERE (saga_type, saga_id) > (?, ?)
				AND (? = '' OR saga_type = ?) AND (? = '' OR saga_id = ?) AND (? = '' OR status = ?)
			ORDER BY saga_type, saga_id LIMIT ?`, after.Type, after.ID, q.Type, q.Type, q.ID, q.ID, status, status, page)
		if err != nil {
			return nil, fmt.Errorf("saga: list: %w", err)
		}
		out := make([]Instance, len(rows))
		for i, row := range rows {
			out[i] = row.instance()
		}
		return out, nil
	})
}

// storedText reports whether all values can be stored; under others nothing is, and asking Postgres for
// them is an error.
func storedText(values ...string) bool {
	for _, value := range values {
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return false
		}
	}
	return true
}

func none[T any](func(T, error) bool) {}

// paged iterates what next returns, each time for the last one seen, until a page is short.
func paged[T any](next func(after T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last T
		for {
			items, err := next(last)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
				last = item
			}
			if len(items) < page {
				return
			}
		}
	}
}

// Deadlines lists a saga's pending deadlines, parked ones included, the next one first.
func (e *Engine) Deadlines(ctx context.Context, key Key) ([]deadline.Pending, error) {
	if !storedText(key.Type, key.ID) {
		return nil, nil
	}
	return e.deadlines.Pending(ctx, key.Type, key.ID)
}

// CancelDeadline removes the deadline pending under a public id, parked or not, and tells whether there
// was one. A deadline that is firing is not recalled, and what its handler arms afterwards is another one.
func (e *Engine) CancelDeadline(ctx context.Context, publicID string) (bool, error) {
	if err := e.refuseNested(ctx); err != nil || !storedText(publicID) {
		return false, err
	}
	return e.deadlines.Cancel(ctx, publicID)
}

// FireNow makes the deadline pending under a public id due at once and tells whether there was one that
// is not parked. It fires in the next sweep, like any other.
func (e *Engine) FireNow(ctx context.Context, publicID string) (bool, error) {
	if err := e.refuseNested(ctx); err != nil || !storedText(publicID) {
		return false, err
	}
	found, err := e.deadlines.FireNow(ctx, publicID, e.cfg.Now())
	if found {
		e.cfg.Signal.Notify(e.cfg.Now())
		e.wakeOthers()
	}
	return found, err
}
