package saga

import (
	"errors"

	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
)

// Conditions to branch on with errors.Is. What lost against other transactions until its tries were used up wraps
// [schema.ErrConflict].
var (
	// ErrUnknownOutcome is a commit whose answer was lost and that could not be looked up in the caller's
	// time. Handling the event again under the same id is safe.
	ErrUnknownOutcome = schema.ErrUnknownOutcome

	// ErrNested is a call of an engine that one of its own handlers made, or one of another engine on the same
	// [schema.DB]: an event given to it, or an operator's change. It would wait for itself: send a command instead, or
	// call after the commit.
	ErrNested = errors.New("saga: an event cannot be handled, nor stored work changed, from inside a handler")

	// ErrClosed is work given to an engine after [Engine.Close]: nothing of it was begun.
	ErrClosed = errors.New("saga: the engine is closed")

	// ErrNotFound is a saga that is not stored.
	ErrNotFound = errors.New("saga not found")

	// ErrNotParked is parked work that is no longer there: retried, discarded, replaced or gone with its saga.
	ErrNotParked = errors.New("no longer parked")
)

// Permanent marks an error that no retry would mend: a deadline or command that fails with it is parked
// at once.
func Permanent(err error) error { return retry.Permanent(err) }
