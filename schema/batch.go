package schema

import (
	"context"
	"fmt"
	"strings"
)

// Batch collects statements that change rows of different tables. On Postgres they go as one
// statement in one round trip, so none of them sees what another did.
type Batch struct {
	queries []string
	args    [][]any
}

// Add puts a statement at the end and returns its number.
func (b *Batch) Add(query string, args ...any) int {
	b.queries = append(b.queries, query)
	b.args = append(b.args, args)
	return len(b.queries) - 1
}

// Run runs the batch in t and returns how many rows each statement changed.
func (t *Tx) Run(ctx context.Context, b *Batch) ([]int64, error) {
	if len(b.queries) == 0 {
		return nil, nil
	}
	if t.db.writer != nil {
		return t.runSingly(ctx, b)
	}
	return t.runTogether(ctx, b)
}

func (t *Tx) runSingly(ctx context.Context, b *Batch) ([]int64, error) {
	changed := make([]int64, len(b.queries))
	for i, query := range b.queries {
		n, err := t.Exec(ctx, query, b.args[i]...)
		if err != nil {
			return nil, err
		}
		changed[i] = n
	}
	return changed, nil
}

func (t *Tx) runTogether(ctx context.Context, b *Batch) ([]int64, error) {
	var with, counts []string
	var args []any
	for i, query := range b.queries {
		with = append(with, fmt.Sprintf("q%d AS (%s RETURNING 1)", i, query))
		counts = append(counts, fmt.Sprintf("(SELECT count(*) FROM q%d)", i))
		args = append(args, b.args[i]...)
	}
	query := "WITH " + strings.Join(with, ", ") + " SELECT " + strings.Join(counts, " || ',' || ")
	var text string
	if err := t.Get(ctx, &text, query, args...); err != nil {
		return nil, err
	}
	changed := make([]int64, len(b.queries))
	for i, part := range strings.Split(text, ",") {
		if _, err := fmt.Sscan(part, &changed[i]); err != nil {
			return nil, fmt.Errorf("schema: batch: %w", err)
		}
	}
	return changed, nil
}
