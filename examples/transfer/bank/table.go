package bank

import (
	"context"
	"fmt"
	"strings"

	"github.com/norn-go/norn/schema"
)

// tables are written once for both databases; TIME is what differs.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS bank_account (
		account_id text PRIMARY KEY,
		opened     bigint NOT NULL,
		balance    bigint NOT NULL
	)`,
	`CREATE TABLE IF NOT EXISTS bank_order (
		transfer_id  text PRIMARY KEY,
		source_id    text NOT NULL,
		target_id    text NOT NULL,
		cents        bigint NOT NULL,
		debit_after  bigint,
		credit_after bigint
	)`,
	`CREATE TABLE IF NOT EXISTS bank_booking (
		transfer_id text NOT NULL,
		command     text NOT NULL,
		account_id  text NOT NULL,
		cents       bigint NOT NULL,
		PRIMARY KEY (transfer_id, command)
	)`,
	`CREATE TABLE IF NOT EXISTS bank_confirmation (
		transfer_id text NOT NULL,
		command     text NOT NULL,
		due_at      TIME NOT NULL,
		PRIMARY KEY (transfer_id, command)
	)`,
	`CREATE INDEX IF NOT EXISTS bank_confirmation_due ON bank_confirmation (due_at)`,
}

// CreateTables creates the bank's tables where they are missing. Several processes may do it at once.
func CreateTables(ctx context.Context, db *schema.DB) error {
	time := map[string]string{"sqlite": "integer", "postgres": "timestamptz"}[db.Dialect()]
	create := func(ctx context.Context, tx *schema.Tx) error {
		for _, table := range tables {
			if _, err := tx.Exec(ctx, strings.Replace(table, "TIME", time, 1)); err != nil {
				return err
			}
		}
		return nil
	}
	// On Postgres IF NOT EXISTS does not see a table that another process is creating, but fails when that has
	// committed; the next time it does see it.
	var err error
	for range 5 {
		if err = db.Tx(ctx, create); err == nil {
			return nil
		}
	}
	return fmt.Errorf("bank: create the tables: %w", err)
}
