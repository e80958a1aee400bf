package input_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/input"
)

const good = `{"transferId":"t1","sourceAccountId":"a","targetAccountId":"b","amount":"12.34","debit":"50ms","credit":"never"}`

// but is the good line with one thing replaced.
func but(old, with string) string { return strings.Replace(good, old, with, 1) }

func read(t *testing.T, lines ...string) ([]input.Order, []input.Refusal) {
	t.Helper()
	orders, refusals, err := input.Read("in.jsonl", strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return orders, refusals
}

func TestGoodLineBecomesAnOrder(t *testing.T) {
	orders, refusals := read(t, good)
	require.Empty(t, refusals)
	require.Equal(t, []input.Order{{
		TransferID: "t1", SourceAccountID: "a", TargetAccountID: "b", Amount: decimal.RequireFromString("12.34"),
		Debit: input.Delay{After: 50 * time.Millisecond}, Credit: input.Delay{Never: true},
	}}, orders)
}

func TestBadLineIsRefusedWithItsReason(t *testing.T) {
	for name, c := range map[string]struct{ line, reason string }{
		"no JSON":              {"transfer t1", "is no JSON object"},
		"another JSON value":   {`["t1"]`, "is no JSON object"},
		"cut off":              {good[:40], "is no JSON: it ends in the middle"},
		"cut off behind a key": {`{"transferId"`, "is no JSON: it ends in the middle"},
		"broken within":        {but(`"a"`, `"a`), "is no JSON: invalid character"},
		"two objects":          {good + good, "has something behind its JSON object"},
		"not UTF-8":            {but("t1", "t\xff"), "is not UTF-8"},
		"unknown field":        {but("{", `{"currency":"EUR",`), `unknown field "currency" (known: transferId, `},
		"other spelling":       {but("transferId", "TransferID"), `unknown field "TransferID"`},
		"repeated field":       {but("{", `{"transferId":"t0",`), "transferId is given twice"},
		"missing field":        {but(`"amount":"12.34",`, ""), "amount is missing"},
		"null":                 {but(`"t1"`, "null"), "transferId must be a text in quotes, got null"},
		"amount as a number":   {but(`"12.34"`, "12.34"), "amount must be a text in quotes, got 12.34"},
		"empty id":             {but("t1", ""), "transferId is empty"},
		"control character":    {but("t1", `t\u0000`), `transferId "t\x00" has a control character`},
		"long id":              {but("t1", strings.Repeat("x", 201)), "transferId has 201 bytes, more than 200"},
		"negative amount":      {but("12.34", "-12.34"), `amount "-12.34" is not more than 0`},
		"zero amount":          {but("12.34", "0.00"), `amount "0.00" is not more than 0`},
		"three decimals":       {but("12.34", "12.345"), `amount "12.345" has more than two decimals`},
		"exponent":             {but("12.34", "1e3"), `amount "1e3" is no amount such as "12.34"`},
		"no decimals":          {but("12.34", "12."), `amount "12." is no amount`},
		"not a number":         {but("12.34", "NaN"), `amount "NaN" is no amount`},
		"comma":                {but("12.34", "12,34"), `amount "12,34" is no amount`},
		"endless amount":       {but("12.34", strings.Repeat("9", 99)), `amount "9999999999999999999999999999999999999999"… is no amount`},
		"number without unit":  {but("50ms", "50"), `debit "50" is no duration with a unit, such as "50ms", and not "never"`},
		"zero without unit":    {but("50ms", "0"), `debit "0" is no duration with a unit`},
		"no duration":          {but("50ms", "soon"), `debit "soon" is no duration`},
		"negative duration":    {but(`"never"`, `"-1s"`), `credit "-1s" is negative`},
		"never, misspelt":      {but(`"never"`, `"Never"`), `credit "Never" is no duration`},
		"same accounts":        {but(`"b"`, `"a"`), `sourceAccountId and targetAccountId are both "a"`},
		"too much":             {but("12.34", "1000000.01"), `insufficient funds: account "a" opens with 1000000.00 and would have to pay 1000000.01`},
		"huge line":            {but("t1", strings.Repeat("x", input.LineLimit)), "is longer than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			orders, refusals := read(t, "", c.line, but("t1", "t2"))
			require.Len(t, refusals, 1)
			require.Equal(t, "in.jsonl", refusals[0].File)
			require.Equal(t, 2, refusals[0].Line)
			require.Contains(t, refusals[0].Reason, c.reason)
			require.Contains(t, refusals[0].Error(), "in.jsonl:2: ")
			require.Len(t, orders, 1, "the line behind the bad one is read as if it were alone")
		})
	}
}

func TestAllMistakesOfALineAreReportedTogether(t *testing.T) {
	_, refusals := read(t, `{"transferId":"","sourceAccountId":"a","targetAccountId":"a","amount":"x","debit":"5","credit":"5"}`)
	require.Len(t, refusals, 1)
	require.Equal(t, `transferId is empty; amount "x" is no amount such as "12.34"; `+
		`debit "5" is no duration with a unit, such as "50ms", and not "never"; `+
		`credit "5" is no duration with a unit, such as "50ms", and not "never"; `+
		`sourceAccountId and targetAccountId are both "a"`, refusals[0].Reason)
}

func TestRepeatedTransferIDIsRefusedAndNamesTheFirstLine(t *testing.T) {
	orders, refusals := read(t, good, but("t1", "t2"), good)
	require.Len(t, orders, 2)
	require.Equal(t, []input.Refusal{{File: "in.jsonl", Line: 3, Reason: `transferId "t1" is also in line 1`}}, refusals)
}

func TestAccountMaySpendWhatItOpensWithAndNoMore(t *testing.T) {
	lines := []string{but("12.34", "999999.99"), but("t1", "t2"), strings.Replace(but("t1", "t3"), "12.34", "0.01", 1)}
	orders, refusals := read(t, lines...)
	require.Len(t, orders, 2)
	require.Len(t, refusals, 1)
	require.Equal(t, 2, refusals[0].Line)
}

func TestLineEndsAndBlankLinesDoNotMatter(t *testing.T) {
	orders, refusals := read(t, "\ufeff"+good+"\r", "  ", "\t"+but("t1", "t2"), "", "")
	require.Empty(t, refusals)
	require.Len(t, orders, 2)
}

func TestUnreadableInputIsAnErrorAndNoRefusal(t *testing.T) {
	broken := errors.New("device on fire")
	_, _, err := input.Read("in.jsonl", iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	_, _, err = input.ReadFile(t.TempDir() + "/nothing.jsonl")
	require.ErrorContains(t, err, "nothing.jsonl")
}

func FuzzEveryLineIsTakenOrRefused(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(good + "\n{}\n\xff\n" + good))
	f.Fuzz(func(t *testing.T, data []byte) {
		orders, _, err := input.Read("in.jsonl", bytes.NewReader(data))
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, input.Write(&out, orders))
		again, refusals, err := input.Read("out.jsonl", &out)
		require.NoError(t, err)
		require.Empty(t, refusals)
		require.Len(t, again, len(orders))
	})
}
