package outbox

import (
	"context"
	"database/sql"
	"errors"
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

// head is the first waiting command of its saga.
type head struct {
	saga
	Seq    int64
	NextAt schema.Time `db:"next_at"`
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
		args = append(args, column(s.types))
	}
	if s.sagaTypes != nil {
		b.WriteString(" AND (saga_type IN (SELECT known FROM {rows known text})) IS TRUE")
		args = append(args, column(s.sagaTypes))
	}
	return b.String(), args
}

func column(values []string) schema.Rows {
	rows := make(schema.Rows, len(values))
	for i, v := range values {
		rows[i] = []any{v}
	}
	return rows
}

// onlyHeads keeps of each saga the first waiting command. It is asked for each row by itself, so that
// no plan looks at sagas that are not due.
const onlyHeads = ` AND seq = (SELECT min(seq) FROM {command} AS earlier WHERE earlier.saga_type = c.saga_type
	AND earlier.saga_id = c.saga_id AND earlier.parked_at IS NULL)`

func notThese(skip []saga) (text string, arg schema.Rows) {
	rows := make(schema.Rows, len(skip))
	for i, s := range skip {
		rows[i] = []any{s.Type, s.ID}
	}
	return " AND (saga_type, saga_id) NOT IN (SELECT t, i FROM {rows t text, i text})", rows
}

// heads reads which sagas have a command to deliver at the cutoff, in the order of its next attempt,
// behind after and without those of skip.
func (s *Store) heads(ctx context.Context, sc scope, cutoff time.Time, after head, skip []saga, limit int) ([]head, error) {
	query, args := headsQuery(sc, cutoff, after, skip, limit)
	var found []head
	if err := s.db.Select(ctx, &found, query, args...); err != nil {
		return nil, fmt.Errorf("outbox: find due commands: %w", err)
	}
	return found, nil
}

func headsQuery(sc scope, cutoff time.Time, after head, skip []saga, limit int) (query string, args []any) {
	known, knownArgs := sc.conditions()
	without, withoutArg := notThese(skip)
	query = `SELECT seq, saga_type, saga_id, next_at FROM {command} AS c
		WHERE parked_at IS NULL AND next_at <= ? AND (next_at, seq) > (?, ?)` + known + without + onlyHeads + `
		ORDER BY next_at, seq LIMIT ?`
	return query, slices.Concat([]any{cutoff, beginning(after.NextAt.Time), after.Seq}, knownArgs, []any{withoutArg, limit})
}

// beginning stands for the zero time, which is no time of a row.
func beginning(t time.Time) time.Time {
	if t.IsZero() {
		return time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// next is the earliest time at which a saga outside of skip has a command to deliver, and whether
// there is one.
func (s *Store) next(ctx context.Context, sc scope, skip []saga) (at time.Time, ok bool, err error) {
	query, args := nextQuery(sc, skip)
	var next schema.Time
	err = s.db.Get(ctx, &next, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("outbox: find the next command: %w", err)
	}
	return next.Time, true, nil
}

func nextQuery(sc scope, skip []saga) (query string, args []any) {
	known, args := sc.conditions()
	without, withoutArg := notThese(skip)
	return `SELECT next_at FROM {command} AS c WHERE parked_at IS NULL` + known + without + onlyHeads + `
		ORDER BY next_at, seq LIMIT 1`, append(args, withoutArg)
}

// Kind is what a relay must know to deliver a command.
type Kind struct {
	SagaType string `db:"saga_type"`
	Type     string
}

// foreign lists the kinds of commands that are due and outside of the scope. It looks at no more than
// the first thousand due rows.
func (s *Store) foreign(ctx context.Context, sc scope, cutoff time.Time) ([]Kind, error) {
	var due []Kind
	err := s.db.Select(ctx, &due, `SELECT DISTINCT saga_type, type FROM (SELECT saga_type, type FROM {command}
		WHERE parked_at IS NULL AND next_at <= ? ORDER BY next_at, seq LIMIT 1000) AS due ORDER BY saga_type, type`, cutoff)
	if err != nil {
		return nil, fmt.Errorf("outbox: find foreign commands: %w", err)
	}
	return slices.DeleteFunc(due, func(k Kind) bool { return sc.knows(k.SagaType, k.Type) }), nil
}
