package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/norn-go/norn/schema"
)

// saga is whose commands they are: the unit of order.
type saga struct {
	Type string `db:"saga_type"`
	ID   string `db:"saga_id"`
}

// candidate is a command that is due, and whether it is the first waiting one of its saga.
type candidate struct {
	saga
	Seq    int64
	NextAt schema.Time `db:"next_at"`
	First  bool
}

// scope is what a relay may deliver.
type scope struct {
	anyType   bool     // a sink takes what types does not list
	types     []string // command types
	sagaTypes []string // nil: the commands of all sagas
}

func (s scope) knows(sagaType, commandType string) bool {
	return (s.anyType || slices.Contains(s.types, commandType)) &&
		(s.sagaTypes == nil || slices.Contains(s.sagaTypes, sagaType))
}

// conditions keep a query on the commands that s knows. IS TRUE keeps Postgres from turning the lists
// into joins, which would cost the order of the index.
func (s scope) conditions() (text string, args []any) {
	var b strings.Builder
	if !s.anyType {
		b.WriteString(" AND (type IN (SELECT known FROM {rows known text})) IS TRUE")
		args = append(args, schema.Column(s.types))
	}
	if s.sagaTypes != nil {
		b.WriteString(" AND (saga_type IN (SELECT known FROM {rows known text})) IS TRUE")
		args = append(args, schema.Column(s.sagaTypes))
	}
	return b.String(), args
}

func notThese(skip []saga) (text string, arg schema.Rows) {
	rows := make(schema.Rows, len(skip))
	for i, s := range skip {
		rows[i] = []any{s.Type, s.ID}
	}
	return " AND (saga_type, saga_id) NOT IN (SELECT t, i FROM {rows t text, i text})", rows
}

// due reads commands that are to be delivered at the cutoff, in the order of their next attempt, behind
// after and without those of the sagas of skip.
func (s *Store) due(ctx context.Context, sc scope, cutoff time.Time, after candidate, skip []saga, limit int) ([]candidate, error) {
	query, args := dueQuery(sc, cutoff, after, skip, limit)
	var found []candidate
	if err := s.db.Select(ctx, &found, query, args...); err != nil {
		return nil, fmt.Errorf("outbox: find due commands: %w", err)
	}
	return found, nil
}

// dueQuery looks for the first command of a saga as the first one at or behind the saga's place in the
// index: asked by equality, Postgres might walk another index in the order of seq.
func dueQuery(sc scope, cutoff time.Time, after candidate, skip []saga, limit int) (query string, args []any) {
	known, knownArgs := sc.conditions()
	without, withoutArg := notThese(skip)
	query = `SELECT seq, saga_type, saga_id, next_at, seq = (SELECT seq FROM {command} AS f WHERE f.parked_at IS NULL
			AND f.saga_type = c.saga_type AND f.saga_id >= c.saga_id ORDER BY f.saga_type, f.saga_id, f.seq LIMIT 1) AS first
		FROM (SELECT seq, saga_type, saga_id, next_at FROM {command}
			WHERE parked_at IS NULL AND next_at <= ? AND (next_at, seq) > (?, ?)` + known + without + `
			ORDER BY next_at, seq LIMIT ?) AS c
		ORDER BY next_at, seq`
	return query, slices.Concat([]any{cutoff, after.NextAt.Time, after.Seq}, knownArgs, []any{withoutArg, limit})
}

// next is the earliest time until latest at which a saga outside of skip has a command to deliver, else
// latest.
func (s *Store) next(ctx context.Context, sc scope, latest time.Time, skip []saga) (time.Time, error) {
	const page = 100
	var last candidate
	for {
		found, err := s.due(ctx, sc, latest, last, skip, page)
		if err != nil {
			return latest, err
		}
		for _, c := range found {
			if c.First {
				return c.NextAt.Time, nil
			}
		}
		if len(found) < page {
			return latest, nil
		}
		last = found[page-1]
	}
}
