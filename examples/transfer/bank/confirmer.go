package bank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Handler takes events: a *saga.Engine.
type Handler interface {
	Handle(ctx context.Context, event any, opts ...saga.MessageOption) error
}

// Confirmer delivers the confirmations that the bank owes. Several processes may run one: an event that both
// deliver is handled once, since its id is the same.
type Confirmer struct {
	bank *Bank
	to   Handler
	log  *slog.Logger
}

// NewConfirmer makes a confirmer that does nothing until Run.
func NewConfirmer(b *Bank, to Handler) *Confirmer {
	return &Confirmer{bank: b, to: to, log: b.log}
}

const (
	confirmationsAtOnce = 200
	confirmWorkers      = 16
	// lookEvery is how soon a confirmation is seen that the bank of another process owes.
	lookEvery  = 100 * time.Millisecond
	afterError = time.Second
)

// Run delivers until ctx ends and then returns nil. Trouble is logged when it begins and when it is over;
// what was not delivered stays in the table.
func (c *Confirmer) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		pause, err := c.turn(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err != nil && !failing:
			c.log.Error("bank: confirmations wait", "err", err)
		case err == nil && failing:
			c.log.Info("bank: confirmations flow again")
		}
		failing = err != nil
		c.rest(ctx, pause)
	}
	return nil
}

// turn delivers what is due and tells how long to rest.
func (c *Confirmer) turn(ctx context.Context) (time.Duration, error) {
	delivered, err := c.Deliver(ctx)
	if err != nil {
		return afterError, err
	}
	if delivered == confirmationsAtOnce {
		return 0, nil
	}
	next, owed, err := c.next(ctx)
	if err != nil {
		return afterError, err
	}
	if !owed {
		return lookEvery, nil
	}
	return min(next, lookEvery), nil
}

func (c *Confirmer) rest(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	select {
	case <-c.bank.owed:
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

type confirmation struct {
	TransferID string `db:"transfer_id"`
	Command    string
}

// Deliver delivers confirmations that are due, some hundred at most, and returns how many were due. One that
// fails does not keep others from being delivered. They are removed only after their events were handled, so each
// is delivered at least once.
func (c *Confirmer) Deliver(ctx context.Context) (int, error) {
	var due []confirmation
	err := c.bank.db.Select(ctx, &due, `SELECT transfer_id, command FROM bank_confirmation
		WHERE due_at <= {now} ORDER BY due_at, transfer_id LIMIT ?`, confirmationsAtOnce)
	if err != nil {
		return 0, fmt.Errorf("bank: confirmations: %w", err)
	}
	errs := make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(confirmWorkers)
	for i, owed := range due {
		group.Go(func() error {
			errs[i] = c.confirm(ctx, owed)
			return nil
		})
	}
	_ = group.Wait() // errors are in errs
	var delivered schema.Rows
	for i, owed := range due {
		if errs[i] == nil {
			delivered = append(delivered, []any{owed.TransferID, owed.Command})
		}
	}
	return len(due), errors.Join(append(errs, c.remove(ctx, delivered))...)
}

func (c *Confirmer) confirm(ctx context.Context, owed confirmation) error {
	var event any = transfer.DebitConfirmed{TransferID: owed.TransferID}
	if owed.Command == credit {
		event = transfer.CreditConfirmed{TransferID: owed.TransferID}
	}
	if err := c.to.Handle(ctx, event, saga.WithID("confirmed/"+owed.Command+"/"+owed.TransferID)); err != nil {
		return fmt.Errorf("bank: confirm %s %s: %w", owed.Command, owed.TransferID, err)
	}
	return nil
}

func (c *Confirmer) remove(ctx context.Context, delivered schema.Rows) error {
	if len(delivered) == 0 {
		return nil
	}
	_, err := c.bank.db.Exec(ctx, `DELETE FROM bank_confirmation WHERE (transfer_id, command) IN
		(SELECT a, b FROM {rows a text, b text})`, delivered)
	if err != nil {
		return fmt.Errorf("bank: remove confirmations: %w", err)
	}
	return nil
}

// next tells in how long the next confirmation is due, by the database's clock.
func (c *Confirmer) next(ctx context.Context) (time.Duration, bool, error) {
	var row struct{ Due, Now schema.Time }
	err := c.bank.db.Get(ctx, &row, "SELECT (SELECT MIN(due_at) FROM bank_confirmation) AS due, {now} AS now")
	if err != nil {
		return 0, false, fmt.Errorf("bank: confirmations: %w", err)
	}
	return row.Due.Sub(row.Now.Time), !row.Due.IsZero(), nil
}
