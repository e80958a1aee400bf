package bank_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestAcceptedAgainOrdersChangeNothing(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := open(t, db)
		require.NoError(t, b.Debit(t.Context(), debit("t1")))
		require.NoError(t, bank.Accept(t.Context(), db, orders))
		require.EqualValues(t, -1234, b.balance("a"))
	})
}

func TestOrderKnownWithAnotherContentIsRefusedAndNothingAccepted(t *testing.T) {
	for name, change := range map[string]func(*input.Order){
		"source": func(o *input.Order) { o.SourceAccountID = "c" },
		"target": func(o *input.Order) { o.TargetAccountID = "c" },
		"amount": func(o *input.Order) { o.Amount = decimal.NewFromInt(1) },
		"debit":  func(o *input.Order) { o.Debit = after(51) },
		"credit": func(o *input.Order) { o.Credit = input.Delay{Never: true} },
	} {
		t.Run(name, func(t *testing.T) {
			schematest.Each(t, func(t *testing.T, db *schema.DB) {
				open(t, db)
				changed := slices.Clone(orders)
				change(&changed[0])
				changed = append(changed, input.Order{TransferID: "new", SourceAccountID: "d", TargetAccountID: "e", Amount: amount})
				err := bank.Accept(t.Context(), db, changed)
				require.ErrorIs(t, err, bank.ErrOtherOrder)
				require.ErrorContains(t, err, `"t1"`)
				money, err := bank.Count(t.Context(), db)
				require.NoError(t, err)
				require.EqualValues(t, 2*1000000_00, money.Opened, "no account was opened")
			})
		})
	}
}

func TestProcessesThatStartAtOnceCreateTablesAndAcceptOnce(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			address := schematest.URL(t, name)
			many := input.Generate(500, 3)
			var starts sync.WaitGroup
			for range 4 {
				db := schematest.Open(t, address)
				starts.Go(func() {
					if err := bank.CreateTables(t.Context(), db); err != nil {
						t.Error(err)
						return
					}
					if err := bank.Accept(t.Context(), db, many); err != nil {
						t.Error(err)
					}
				})
			}
			starts.Wait()
			db := schematest.Open(t, address)
			var accepted int
			require.NoError(t, db.Get(t.Context(), &accepted, "SELECT count(*) FROM bank_order"))
			require.Equal(t, 500, accepted)
		})
	}
}
