package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/saga"
)

func example() Summary {
	return Summary{
		Transfers: 1000, Completed: 917, Compensated: 83, DeadlinesFired: 83, DurationMs: 13_149, Conserved: true,
		Commands: map[string]int{"DebitAccount": 1000, "CreditAccount": 960, "ReverseDebit": 83, "ReverseCredit": 43},
		money:    bank.Money{Opened: 5_000_000_000, Balance: 5_000_000_000},
	}
}

func TestGoldenSummaries(t *testing.T) {
	short := example()
	short.Conserved, short.money.Balance, short.open = false, -1, []string{"t1-000007"}
	for name, c := range map[string]struct {
		summary Summary
		asJSON  bool
	}{
		"summary.txt":         {example(), false},
		"summary.json":        {example(), true},
		"summary-unsound.txt": {short, false},
		"summary-empty.json":  {Summary{Commands: map[string]int{}, Conserved: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			require.NoError(t, c.summary.write(&got, c.asJSON))
			path := filepath.Join("testdata", name)
			if os.Getenv("NORN_UPDATE_GOLDEN") != "" {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String(), "run make golden")
		})
	}
}

func TestSummaryIsUnsoundWhenMoneyIsMissingATransferIsOpenOrWorkIsParked(t *testing.T) {
	s := example()
	require.NoError(t, s.sound())
	for name, c := range map[string]struct {
		change func(s *Summary)
		reason string
	}{
		"money": {func(s *Summary) { s.Conserved, s.money.Balance = false, 4_999_999_999 }, "the accounts opened with 50000000.00 and hold 49999999.99"},
		"open":  {func(s *Summary) { s.open = []string{"t1", "t2"} }, `2 transfers open, beginning with "t1"`},
		"parked": {func(s *Summary) {
			s.parked = []saga.Parked{{Kind: saga.ParkedCommand, Name: "transfer.DebitAccount", Saga: saga.Key{Type: "transfer-saga", ID: "t1"}, LastError: "closed"}}
		}, "command transfer.DebitAccount of transfer-saga/t1 is parked: closed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := example()
			c.change(&s)
			require.ErrorIs(t, s.sound(), ErrUnsound)
			require.ErrorContains(t, s.sound(), c.reason)
		})
	}
}
