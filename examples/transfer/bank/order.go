package bank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/schema"
)

// ErrOtherOrder is a transfer id that the database knows with another content.
var ErrOtherOrder = errors.New("known to this database with another content")

const chunk = 1000

// Accept opens the accounts of the orders and stores how the banks will behave, all or nothing. Orders and
// accounts that are there already stay as they are, so accepting the same orders again changes nothing; an
// order that differs from the stored one under its id is an error that wraps [ErrOtherOrder].
func Accept(ctx context.Context, db *schema.DB, orders []input.Order) error {
	accounts, rows, err := acceptable(orders)
	if err != nil {
		return fmt.Errorf("bank: accept: %w", err)
	}
	attempt := func(ctx context.Context, tx *schema.Tx) error {
		for part := range slices.Chunk(accounts, chunk) {
			if _, err := tx.Exec(ctx, insertAccounts, schema.Rows(part)); err != nil {
				return err
			}
		}
		var other []string
		for part := range slices.Chunk(rows, chunk) {
			if _, err := tx.Exec(ctx, insertOrders, schema.Rows(part)); err != nil {
				return err
			}
			var found []struct{ ID string }
			if err := tx.Select(ctx, &found, findOthers, schema.Rows(part)); err != nil {
				return err
			}
			for _, f := range found {
				other = append(other, f.ID)
			}
		}
		if len(other) > 0 {
			return fmt.Errorf("%d transfers are %w, beginning with %q: use another database or other transfer ids", len(other), ErrOtherOrder, other[0])
		}
		return nil
	}
	for range 5 {
		if err = db.Tx(ctx, attempt); !schema.Retryable(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("bank: accept: %w", err)
	}
	return nil
}

const (
	orderRows = `{rows a text, b text, c text, d int, e int, f int}`

	insertAccounts = `INSERT INTO bank_account (account_id, opened, balance)
		SELECT a, b, b FROM {rows a text, b int} WHERE true ON CONFLICT DO NOTHING`
	insertOrders = `INSERT INTO bank_order (transfer_id, source_id, target_id, cents, debit_after, credit_after)
		SELECT a, b, c, d, e, f FROM ` + orderRows + ` WHERE true ON CONFLICT DO NOTHING`
	findOthers = `SELECT a AS id FROM ` + orderRows + ` JOIN bank_order ON transfer_id = a
		WHERE source_id <> b OR target_id <> c OR cents <> d
		OR debit_after IS DISTINCT FROM e OR credit_after IS DISTINCT FROM f ORDER BY ord`
)

// acceptable makes rows of orders, sorted so that processes that accept at the same time wait for each other
// instead of deadlocking.
func acceptable(orders []input.Order) (accounts, rows [][]any, err error) {
	opened, err := centsOf(input.Opening)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, o := range orders {
		for _, id := range []string{o.SourceAccountID, o.TargetAccountID} {
			if !seen[id] {
				seen[id] = true
				accounts = append(accounts, []any{id, opened})
			}
		}
		cents, err := centsOf(o.Amount)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", o.TransferID, err)
		}
		rows = append(rows, []any{o.TransferID, o.SourceAccountID, o.TargetAccountID, cents, micros(o.Debit), micros(o.Credit)})
	}
	byID := func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) }
	slices.SortFunc(accounts, byID)
	slices.SortFunc(rows, byID)
	return accounts, rows, nil
}

// micros is a delay as it is stored; NULL is never.
func micros(d input.Delay) any {
	if d.Never {
		return nil
	}
	return d.After.Microseconds()
}

// delayOf reads after how long a command is confirmed.
func delayOf(ctx context.Context, tx *schema.Tx, e entry) (input.Delay, error) {
	var row struct {
		DebitAfter  *int64 `db:"debit_after"`
		CreditAfter *int64 `db:"credit_after"`
	}
	if err := tx.Get(ctx, &row, "SELECT debit_after, credit_after FROM bank_order WHERE transfer_id = ?", e.transfer); err != nil {
		return input.Delay{}, fmt.Errorf("order: %w", err)
	}
	after := row.DebitAfter
	if e.command == credit {
		after = row.CreditAfter
	}
	if after == nil {
		return input.Delay{Never: true}, nil
	}
	return input.Delay{After: time.Duration(*after) * time.Microsecond}, nil
}
