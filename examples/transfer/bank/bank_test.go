package bank_test

import (
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestRepeatedCommandBooksOnce(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		for range 3 {
			require.NoError(t, b.Debit(t.Context(), debit("t1")))
			require.NoError(t, b.Credit(t.Context(), credit("t1")))
		}
		require.EqualValues(t, -1234, b.balance("a"))
		require.EqualValues(t, 1234, b.balance("b"))
		for range 3 {
			require.NoError(t, b.ReverseCredit(t.Context(), reverseCredit("t1")))
			require.NoError(t, b.ReverseDebit(t.Context(), reverseDebit("t1")))
		}
		require.Zero(t, b.balance("a"))
		require.Zero(t, b.balance("b"))
		require.Len(t, b.bookings(), 4)
	})
}

func TestCommandDeliveredBySeveralAtOnceBooksOnce(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		var deliveries sync.WaitGroup
		for range 8 {
			deliveries.Go(func() {
				if err := b.Debit(t.Context(), debit("t1")); err != nil {
					t.Error(err)
				}
			})
			deliveries.Go(func() {
				if err := b.Credit(t.Context(), credit("t1")); err != nil {
					t.Error(err)
				}
			})
		}
		deliveries.Wait()
		require.EqualValues(t, -1234, b.balance("a"))
		require.EqualValues(t, 1234, b.balance("b"))
		require.Equal(t, []string{"t1 CreditAccount", "t1 DebitAccount"}, b.owed())
	})
}

func TestReversalOfNothingBooksNothingAndForbidsWhatComesLater(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		require.NoError(t, b.ReverseDebit(t.Context(), reverseDebit("t1")))
		require.NoError(t, b.ReverseCredit(t.Context(), reverseCredit("t1")))
		require.NoError(t, b.Debit(t.Context(), debit("t1")))
		require.NoError(t, b.Credit(t.Context(), credit("t1")))
		require.Zero(t, b.balance("a"))
		require.Zero(t, b.balance("b"))
		require.Empty(t, b.owed(), "what was not booked is not confirmed")
		require.Len(t, b.bookings(), 4)
	})
}

func TestDebitWithoutTheMoneyBooksAndConfirmsNothing(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		tooMuch := debit("t1")
		tooMuch.Amount = decimal.RequireFromString("1000000.01")
		require.NoError(t, b.Debit(t.Context(), tooMuch))
		require.Zero(t, b.balance("a"))
		require.Empty(t, b.owed())
		require.NoError(t, b.ReverseDebit(t.Context(), transfer.ReverseDebit{TransferID: "t1", AccountID: "a", Amount: tooMuch.Amount}))
		require.Zero(t, b.balance("a"), "a reversal gives back what was taken, not what was asked for")
	})
}

func TestCreditIsTakenBackAlsoFromAnEmptyAccount(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		require.NoError(t, b.Credit(t.Context(), credit("t1")))
		_, err := db.Exec(t.Context(), "UPDATE bank_account SET balance = 0 WHERE account_id = 'b'")
		require.NoError(t, err)
		require.NoError(t, b.ReverseCredit(t.Context(), reverseCredit("t1")))
		require.EqualValues(t, -1000000_00-1234, b.balance("b"))
	})
}

func TestLostConfirmationIsNotOwedThoughTheWorkIsDone(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		require.NoError(t, b.Debit(t.Context(), debit("lost")))
		require.EqualValues(t, -1234, b.balance("a"))
		require.Empty(t, b.owed())
	})
}

func TestWhatNoRetryMendsIsPermanent(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		unknown := debit("t1")
		unknown.AccountID = "nobody's"
		err := b.Debit(t.Context(), unknown)
		require.ErrorContains(t, err, `no account "nobody's"`)
		require.True(t, retry.IsPermanent(err))

		fraction := debit("t1")
		fraction.Amount = decimal.RequireFromString("0.001")
		err = b.Debit(t.Context(), fraction)
		require.ErrorContains(t, err, "amount 0.001 is not a positive number of cents")
		require.True(t, retry.IsPermanent(err))
		require.Empty(t, b.bookings())
	})
}

// However often, and in whatever order, the commands of a transfer come: no effect is doubled, and after
// both reversals everything is as it was.
func TestNoOrderOfDeliveriesDoublesAnEffect(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		rapid.Check(t, func(r *rapid.T) {
			for _, table := range []string{"bank_booking", "bank_confirmation"} {
				_, err := db.Exec(t.Context(), "DELETE FROM "+table)
				require.NoError(r, err)
			}
			_, err := db.Exec(t.Context(), "UPDATE bank_account SET balance = opened")
			require.NoError(r, err)
			commands := map[string]func() error{
				"debit":          func() error { return b.Debit(t.Context(), debit("t1")) },
				"credit":         func() error { return b.Credit(t.Context(), credit("t1")) },
				"reverse debit":  func() error { return b.ReverseDebit(t.Context(), reverseDebit("t1")) },
				"reverse credit": func() error { return b.ReverseCredit(t.Context(), reverseCredit("t1")) },
			}
			came := map[string]bool{}
			names := rapid.SampledFrom([]string{"debit", "credit", "reverse debit", "reverse credit"})
			for _, name := range rapid.SliceOfN(names, 0, 8).Draw(r, "deliveries") {
				require.NoError(r, commands[name]())
				came[name] = true
			}
			expect := func(done, reversed bool, cents int64) int64 {
				if done && !reversed {
					return cents
				}
				return 0
			}
			require.Equal(r, expect(came["debit"], came["reverse debit"], -1234), b.balance("a"))
			require.Equal(r, expect(came["credit"], came["reverse credit"], 1234), b.balance("b"))
			require.Len(r, b.bookings(), len(came))
		})
	})
}

func TestMoneyIsCountedOverAllAccounts(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		require.NoError(t, bank.CreateTables(t.Context(), db))
		money, err := bank.Count(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, bank.Money{}, money)

		b := open(t, db)
		require.NoError(t, b.Debit(t.Context(), debit("t1")))
		money, err = bank.Count(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, bank.Money{Opened: 2000000_00, Balance: 2000000_00 - 1234}, money)
	})
}
