package saga

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/outbox"
)

// Parked is work that failed for good. It is kept as it was until an operator retries or discards it;
// a parked deadline also goes when its saga cancels it, schedules it anew or ends.
type Parked struct {
	Kind      ParkedKind
	Saga      Key
	Name      string // the deadline's name, or the command's type
	ID        string // the deadline's public id, or the command's id
	Payload   []byte // as it was stored; nil: none
	Attempts  int
	LastError string
	ParkedAt  time.Time

	token string // of a deadline
	seq   int64  // of a command
}

// ParkedKind is what was parked.
type ParkedKind string

// What can be parked.
const (
	ParkedDeadline ParkedKind = "deadline"
	ParkedCommand  ParkedKind = "command"
)

// Parked iterates parked deadlines, then parked commands, of the query's sagas.
func (e *Engine) Parked(ctx context.Context, q Query) iter.Seq2[Parked, error] {
	if !storedText(q.Type, q.ID) {
		return none[Parked]
	}
	return func(yield func(Parked, error) bool) {
		for _, kind := range []iter.Seq2[Parked, error]{e.parkedDeadlines(ctx, q), e.parkedCommands(ctx, q)} {
			for p, err := range kind {
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}

func (e *Engine) parkedDeadlines(ctx context.Context, q Query) iter.Seq2[Parked, error] {
	return paged(func(after Parked) ([]Parked, error) {
		rows, err := e.deadlines.Parked(ctx, q.Type, q.ID, deadline.Key{Type: after.Saga.Type, ID: after.Saga.ID, Name: after.Name}, page)
		out := make([]Parked, len(rows))
		for i, d := range rows {
			out[i] = parkedDeadline(d)
		}
		return out, err
	})
}

func parkedDeadline(d deadline.Pending) Parked {
	p := Parked{
		Kind: ParkedDeadline, Saga: Key{d.Type, d.ID}, Name: d.Name, ID: d.PublicID,
		Attempts: d.Attempts, ParkedAt: d.ParkedAt.Time, token: d.Token,
	}
	if d.Payload != nil {
		p.Payload = []byte(*d.Payload)
	}
	if d.LastError != nil {
		p.LastError = *d.LastError
	}
	return p
}

func (e *Engine) parkedCommands(ctx context.Context, q Query) iter.Seq2[Parked, error] {
	return paged(func(after Parked) ([]Parked, error) {
		rows, err := e.commands.Parked(ctx, q.Type, q.ID, after.seq, page)
		out := make([]Parked, len(rows))
		for i, c := range rows {
			out[i] = parkedCommand(c)
		}
		return out, err
	})
}

func parkedCommand(c outbox.Stored) Parked {
	return Parked{
		Kind: ParkedCommand, Saga: Key{c.SagaType, c.SagaID}, Name: c.Type, ID: c.ID, Payload: c.Payload,
		Attempts: c.Attempt - 1, LastError: c.LastError, ParkedAt: c.ParkedAt, seq: c.Seq,
	}
}

// Retry makes parked work due again, with no attempts counted. If it is no longer parked it is [ErrNotParked].
func (e *Engine) Retry(ctx context.Context, p Parked) error {
	if err := e.refuseNested(ctx); err != nil {
		return err
	}
	var found bool
	var err error
	switch p.Kind {
	case ParkedDeadline:
		found, err = e.deadlines.Retry(ctx, p.deadlineKey(), p.token, e.cfg.Now())
	case ParkedCommand:
		found, err = e.commands.Retry(ctx, p.seq)
	}
	if err := p.outcome("retry", found, err); err != nil {
		return err
	}
	e.Wake()
	return nil
}

// Discard removes parked work for good; the reason is logged with it. If it is no longer parked it is
// [ErrNotParked].
func (e *Engine) Discard(ctx context.Context, p Parked, reason string) error {
	if err := e.refuseNested(ctx); err != nil {
		return err
	}
	var found bool
	var err error
	switch p.Kind {
	case ParkedDeadline:
		found, err = e.deadlines.Discard(ctx, p.deadlineKey(), p.token)
	case ParkedCommand:
		found, err = e.commands.Discard(ctx, p.seq)
	}
	if err := p.outcome("discard", found, err); err != nil {
		return err
	}
	e.cfg.Logger.WarnContext(ctx, "saga: parked work discarded", "kind", p.Kind, "saga", p.Saga.Type, "id", p.Saga.ID,
		"name", p.Name, "reason", reason, "attempts", p.Attempts, "err", p.LastError)
	return nil
}

func (p Parked) deadlineKey() deadline.Key {
	return deadline.Key{Type: p.Saga.Type, ID: p.Saga.ID, Name: p.Name}
}

func (p Parked) outcome(verb string, found bool, err error) error {
	if err == nil && !found {
		err = ErrNotParked
	}
	if err != nil {
		return fmt.Errorf("saga: %s %s %s of %s: %w", verb, p.Kind, p.Name, p.Saga, err)
	}
	return nil
}
