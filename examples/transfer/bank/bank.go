package bank

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/shopspring/decimal"

	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Bank handles the commands of transfers. Each method is safe to call again with the same command. It is
// safe for concurrent use, also by several processes.
type Bank struct {
	db   *schema.DB
	log  *slog.Logger
	owed chan struct{} // one: "look at the confirmations" is said once for many
}

// New makes a bank on tables that exist (see [CreateTables]).
func New(db *schema.DB, log *slog.Logger) *Bank {
	return &Bank{db: db, log: log, owed: make(chan struct{}, 1)}
}

// The commands as bookings know them.
const (
	debit         = "DebitAccount"
	credit        = "CreditAccount"
	reverseDebit  = "ReverseDebit"
	reverseCredit = "ReverseCredit"
)

// Debit takes the amount from the account and owes a confirmation. Without the money, or after its reversal,
// it books nothing and confirms nothing.
func (b *Bank) Debit(ctx context.Context, c transfer.DebitAccount) error {
	return b.book(ctx, entry{transfer: c.TransferID, command: debit, account: c.AccountID}, c.Amount,
		func(cents, balance int64, booked bookings) (int64, bool) {
			if booked.has(reverseDebit) || balance < cents {
				return 0, false
			}
			return -cents, true
		})
}

// Credit adds the amount to the account and owes a confirmation. After its reversal it does nothing.
func (b *Bank) Credit(ctx context.Context, c transfer.CreditAccount) error {
	return b.book(ctx, entry{transfer: c.TransferID, command: credit, account: c.AccountID}, c.Amount,
		func(cents, _ int64, booked bookings) (int64, bool) {
			if booked.has(reverseCredit) {
				return 0, false
			}
			return cents, true
		})
}

// ReverseDebit gives back what the transfer's debit took.
func (b *Bank) ReverseDebit(ctx context.Context, c transfer.ReverseDebit) error {
	return b.book(ctx, entry{transfer: c.TransferID, command: reverseDebit, account: c.AccountID}, c.Amount,
		func(_, _ int64, booked bookings) (int64, bool) { return -booked[debit], false })
}

// ReverseCredit takes back what the transfer's credit added, if need be below zero: it is the bank's own booking.
func (b *Bank) ReverseCredit(ctx context.Context, c transfer.ReverseCredit) error {
	return b.book(ctx, entry{transfer: c.TransferID, command: reverseCredit, account: c.AccountID}, c.Amount,
		func(_, _ int64, booked bookings) (int64, bool) { return -booked[credit], false })
}

type entry struct{ transfer, command, account string }

// bookings are what commands of one transfer booked, in cents, by command.
type bookings map[string]int64

func (b bookings) has(command string) bool {
	_, ok := b[command]
	return ok
}

// decide says what a command books, and whether that is confirmed.
type decide func(cents, balance int64, booked bookings) (effect int64, confirmed bool)

// book does a command once: in one transaction, under the account's lock.
func (b *Bank) book(ctx context.Context, e entry, amount decimal.Decimal, decide decide) error {
	cents, err := centsOf(amount)
	if err != nil {
		return saga.Permanent(fmt.Errorf("bank: %s %s: %w", e.command, e.transfer, err))
	}
	confirmed := false
	err = b.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		var balance int64
		err := tx.Get(ctx, &balance, "SELECT balance FROM bank_account WHERE account_id = ? {lock}", e.account)
		if errors.Is(err, sql.ErrNoRows) {
			return saga.Permanent(fmt.Errorf("no account %q", e.account))
		}
		if err != nil {
			return err
		}
		booked, err := bookingsOf(ctx, tx, e.transfer)
		if err != nil || booked.has(e.command) {
			return err
		}
		var effect int64
		effect, confirmed = decide(cents, balance, booked)
		return write(ctx, tx, e, effect, confirmed)
	})
	if err != nil {
		return fmt.Errorf("bank: %s %s: %w", e.command, e.transfer, err)
	}
	if confirmed {
		b.wake()
	}
	return nil
}

func bookingsOf(ctx context.Context, tx *schema.Tx, transferID string) (bookings, error) {
	var rows []struct {
		Command string
		Cents   int64
	}
	if err := tx.Select(ctx, &rows, "SELECT command, cents FROM bank_booking WHERE transfer_id = ?", transferID); err != nil {
		return nil, err
	}
	booked := bookings{}
	for _, r := range rows {
		booked[r.Command] = r.Cents
	}
	return booked, nil
}

func write(ctx context.Context, tx *schema.Tx, e entry, effect int64, confirmed bool) error {
	var changes schema.Batch
	changes.Add("INSERT INTO bank_booking (transfer_id, command, account_id, cents) VALUES (?, ?, ?, ?)", e.transfer, e.command, e.account, effect)
	if effect != 0 {
		changes.Add("UPDATE bank_account SET balance = balance + ? WHERE account_id = ?", effect, e.account)
	}
	if confirmed {
		delay, err := delayOf(ctx, tx, e)
		if err != nil {
			return err
		}
		if !delay.Never {
			changes.Add("INSERT INTO bank_confirmation (transfer_id, command, due_at) VALUES (?, ?, {now+})", e.transfer, e.command, delay.After)
		}
	}
	_, err := tx.Run(ctx, &changes)
	return err
}

// wake tells the confirmer of this process that a confirmation is owed.
func (b *Bank) wake() {
	select {
	case b.owed <- struct{}{}:
	default:
	}
}

// centsOf is an amount in cents.
func centsOf(amount decimal.Decimal) (int64, error) {
	cents := amount.Shift(2)
	if !cents.IsInteger() || !cents.IsPositive() || !cents.BigInt().IsInt64() {
		return 0, fmt.Errorf("amount %s is not a positive number of cents", amount)
	}
	return cents.IntPart(), nil
}
