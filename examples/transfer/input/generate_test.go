package input_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/input"
)

const checkedIn = "../testdata/transfers-1000.jsonl"

func TestGoldenInputIsWhatTheGeneratorMakes(t *testing.T) {
	var made bytes.Buffer
	require.NoError(t, input.Write(&made, input.Generate(1000, 1)))
	if os.Getenv("NORN_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(checkedIn, made.Bytes(), 0o644))
	}
	stored, err := os.ReadFile(checkedIn)
	require.NoError(t, err)
	require.Equal(t, string(stored), made.String(), "run make golden")
}

func TestGeneratedInputIsReadWithoutRefusals(t *testing.T) {
	for _, count := range []int{1, 2, 1000, 5000} {
		orders := input.Generate(count, 7)
		var made bytes.Buffer
		require.NoError(t, input.Write(&made, orders))
		read, refusals, err := input.Read("made.jsonl", &made)
		require.NoError(t, err)
		require.Empty(t, refusals)
		require.Len(t, read, count)
		for i := range read {
			require.True(t, read[i].Amount.Equal(orders[i].Amount))
			read[i].Amount = orders[i].Amount
		}
		require.Equal(t, orders, read)
	}
}

func TestSeedsDecideWhatIsGenerated(t *testing.T) {
	require.Equal(t, input.Generate(50, 1), input.Generate(50, 1))
	require.NotEqual(t, input.Generate(50, 1)[0].TransferID, input.Generate(50, 2)[0].TransferID)
}

func TestGeneratedBanksLoseSomeConfirmationsAndSendTheOthersSoon(t *testing.T) {
	debits, credits := 0, 0
	for _, o := range input.Generate(1000, 1) {
		if o.Debit.Never {
			debits++
		}
		if o.Credit.Never {
			credits++
		}
		require.LessOrEqual(t, o.Debit.After, 100*time.Millisecond)
		require.True(t, o.Debit.Never || o.Debit.After >= 10*time.Millisecond)
	}
	require.Positive(t, debits)
	require.Positive(t, credits)
	require.Less(t, debits+credits, 150)
}
