package input

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shopspring/decimal"
)

// How generated banks behave: in this many of a hundred transfers the confirmation is lost, else it comes
// after a time in between.
const (
	debitNever  = 4
	creditNever = 4
	soonest     = 10 * time.Millisecond
	latest      = 100 * time.Millisecond
)

// Generate makes count orders. The same count and seed make the same orders, and other seeds other transfer ids.
func Generate(count int, seed uint64) []Order {
	random := rand.New(rand.NewPCG(seed, 0x6e6f726e))
	accounts := max(10, count/20)
	orders := make([]Order, count)
	for i := range orders {
		source := random.IntN(accounts)
		target := (source + 1 + random.IntN(accounts-1)) % accounts
		orders[i] = Order{
			TransferID:      fmt.Sprintf("t%d-%06d", seed, i+1),
			SourceAccountID: account(source),
			TargetAccountID: account(target),
			Amount:          decimal.New(int64(100+random.IntN(49_901)), -2),
			Debit:           delay(random, debitNever),
			Credit:          delay(random, creditNever),
		}
	}
	return orders
}

func account(n int) string { return fmt.Sprintf("account-%03d", n+1) }

func delay(random *rand.Rand, percentNever int) Delay {
	after := soonest + time.Duration(random.Int64N(int64((latest-soonest)/time.Millisecond)+1))*time.Millisecond
	if random.IntN(100) < percentNever {
		return Delay{Never: true}
	}
	return Delay{After: after}
}
