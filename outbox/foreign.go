package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Kind is what a relay must know to deliver a command.
type Kind struct {
	SagaType string `db:"saga_type"`
	Type     string
}

// String is the kind as it stands in logs.
func (k Kind) String() string { return k.SagaType + ": " + k.Type }

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
