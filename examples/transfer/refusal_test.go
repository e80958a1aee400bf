package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/schema/schematest"
)

const (
	goodLine = `{"transferId":"t1","sourceAccountId":"a","targetAccountId":"b","amount":"12.34","debit":"10ms","credit":"10ms"}`
	badLine  = `{"transferId":"t2","sourceAccountId":"a","targetAccountId":"a","amount":"-1","debit":"10ms","credit":"10ms"}`
)

func TestBadLinesAreAllReportedAndNothingIsStarted(t *testing.T) {
	directory := t.TempDir()
	file, database := filepath.Join(directory, "in.jsonl"), filepath.Join(directory, "transfers.db")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join([]string{goodLine, badLine, "{}}", goodLine}, "\n")), 0o600))
	p := launch(t, "run", "--input", file, "--database", "sqlite://"+database)
	require.Equal(t, 2, p.wait())
	require.Equal(t, []string{
		file + `:2: amount "-1" is not more than 0; sourceAccountId and targetAccountId are both "a"`,
		file + ":3: has something behind its JSON object",
		file + `:4: transferId "t1" is also in line 1`,
		"transfer: input refused: 3 bad lines of " + file + ", nothing was started; mend them or leave them out with --skip-invalid",
	}, p.said)
	require.Zero(t, p.out.Len())
	require.NoFileExists(t, database)
}

func TestSkippedBadLinesAreReportedAndTheOthersRun(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "in.jsonl")
			require.NoError(t, os.WriteFile(file, []byte(goodLine+"\n"+badLine+"\n"), 0o600))
			p := launch(t, "run", "--input", file, "--database", schematest.URL(t, name), "--json", "--skip-invalid")
			s := p.summary()
			require.Equal(t, 1, s.Transfers)
			require.Equal(t, 1, s.Completed)
			require.Contains(t, p.said, "1 line of "+file+" left out")
			require.Contains(t, p.said[0], file+":2: ")
		})
	}
}

func TestMistakesInTheArgumentsAreToldBeforeAnythingStarts(t *testing.T) {
	file := written(t, input.Generate(1, 1))
	for name, c := range map[string]struct {
		arguments string
		status    int
		reason    string
	}{
		"no input":         {"run --database sqlite://x.db", 2, "run wants --input FILE and --database URL"},
		"no such file":     {"run --input nothing.jsonl --database sqlite://x.db", 1, "nothing.jsonl: no such file"},
		"no such database": {"run --input " + file + " --database mysql://x", 1, "transfer: start: config: database.url (given by the program)"},
		"timeout of zero":  {"run --input " + file + " --database sqlite://x.db --timeout 0s", 2, "--timeout must be more than 0"},
		"no unit":          {"run --input " + file + " --database sqlite://x.db --timeout 2", 2, "missing unit"},
		"stray argument":   {"run transfers.jsonl", 2, "unknown command"},
		"unknown flag":     {"run --inptu x", 2, "unknown flag: --inptu"},
		"count of zero":    {"generate --count 0", 2, "--count must be at least 1, got 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, strings.Fields(c.arguments)...)
			require.Equal(t, c.status, p.wait())
			require.Contains(t, strings.Join(p.said, "\n"), c.reason)
			require.Zero(t, p.out.Len())
		})
	}
	require.NoFileExists(t, "x.db")
}

func TestMissingMoneyIsToldAndFailsTheRun(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			orders := input.Generate(3, 41)
			file, address := written(t, orders), schematest.URL(t, name)
			arguments := []string{"run", "--input", file, "--database", address, "--timeout", "500ms", "--json"}
			verify(t, address, orders, launch(t, arguments...).summary())

			db := schematest.Open(t, address)
			_, err := db.Exec(t.Context(), "UPDATE bank_account SET balance = balance - 1 WHERE account_id = ?", orders[0].SourceAccountID)
			require.NoError(t, err)
			p := launch(t, arguments...)
			require.Equal(t, 1, p.wait())
			require.False(t, p.printed().Conserved)
			require.Contains(t, p.said[len(p.said)-1], "the accounts opened with ")
		})
	}
}

func TestOtherContentUnderAKnownTransferIDIsRefused(t *testing.T) {
	orders := input.Generate(2, 51)
	address := schematest.URL(t, "sqlite")
	launch(t, "run", "--input", written(t, orders), "--database", address, "--json").summary()
	orders[1].Amount = orders[1].Amount.Add(orders[1].Amount)
	p := launch(t, "run", "--input", written(t, orders), "--database", address, "--json")
	require.Equal(t, 1, p.wait())
	require.Contains(t, p.said[len(p.said)-1], "known to this database with another content")
}

func TestGenerateWritesWhatRunReads(t *testing.T) {
	p := launch(t, "generate", "--count", "5", "--seed", "3")
	require.Equal(t, 0, p.wait())
	for line := range strings.Lines(p.out.String()) {
		require.True(t, json.Valid([]byte(line)))
	}
	file := filepath.Join(t.TempDir(), "made.jsonl")
	require.Equal(t, 0, launch(t, "generate", "--count", "5", "--seed", "3", "--out", file).wait())
	made, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, p.out.String(), string(made))
	orders, refusals, err := input.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, refusals)
	require.Len(t, orders, 5)
}
