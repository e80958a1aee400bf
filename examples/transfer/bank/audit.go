package bank

import (
	"context"
	"fmt"

	"github.com/norn-go/norn/schema"
)

// Booking is what one command did to its account.
type Booking struct {
	TransferID string `db:"transfer_id"`
	Command    string // the command's type
	AccountID  string `db:"account_id"`
	Cents      int64  // 0: the command came, but there was nothing to do
}

// Bookings lists all bookings. There is at most one for a transfer and a command type, however often the
// command was delivered.
func Bookings(ctx context.Context, db *schema.DB) ([]Booking, error) {
	var all []Booking
	if err := db.Select(ctx, &all, "SELECT transfer_id, command, account_id, cents FROM bank_booking ORDER BY transfer_id, command"); err != nil {
		return nil, fmt.Errorf("bank: bookings: %w", err)
	}
	return all, nil
}

// Money is the sum over all accounts, in cents.
type Money struct {
	Opened  int64 // when they were opened
	Balance int64 // now
}

// Count adds up all accounts.
func Count(ctx context.Context, db *schema.DB) (Money, error) {
	var m Money
	err := db.Get(ctx, &m, `SELECT CAST(COALESCE(SUM(opened), 0) AS bigint) AS opened,
		CAST(COALESCE(SUM(balance), 0) AS bigint) AS balance FROM bank_account`)
	if err != nil {
		return Money{}, fmt.Errorf("bank: count the money: %w", err)
	}
	return m, nil
}

// Overdue counts the confirmations that should have been delivered by now.
func Overdue(ctx context.Context, db *schema.DB) (n int64, err error) {
	if err := db.Get(ctx, &n, "SELECT count(*) FROM bank_confirmation WHERE due_at <= {now}"); err != nil {
		return 0, fmt.Errorf("bank: confirmations: %w", err)
	}
	return n, nil
}
