package saga

import (
	"context"
	"errors"
	"fmt"
)

// panicError is a panic as an error: one line, which wraps the value if that is an error, as of sqlx.MustExec. Its stack
// goes to the log, and for a deadline into the row too.
type panicError struct {
	where string
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic%s: %v", p.where, p.value) }

func (p *panicError) Unwrap() error {
	cause, _ := p.value.(error)
	return cause
}

// reportPanic logs the stack of an event's panic, which its caller is not shown.
func (e *Engine) reportPanic(ctx context.Context, key Key, m Message, err error) {
	if p, ok := errors.AsType[*panicError](err); ok {
		e.cfg.Logger.ErrorContext(ctx, "saga: an invocation panicked", "saga", key.Type, "id", key.ID,
			"event", fmt.Sprintf("%T", m.Payload), "err", p, "stack", string(p.stack))
	}
}

// withStack adds the stack of a panic to the text of its error, for what is stored.
func withStack(err error) error {
	if p, ok := errors.AsType[*panicError](err); ok {
		return fmt.Errorf("%w\n%s", err, p.stack)
	}
	return err
}
