package norn_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga"
)

// What the README shows stands here, word for word.

type (
	TransferRequested struct {
		TransferID, SourceAccountID, TargetAccountID string
		Amount                                       decimal.Decimal
	}
	DebitConfirmed  struct{ TransferID string }
	CreditConfirmed struct{ TransferID string }

	DebitAccount struct {
		AccountID string
		Amount    decimal.Decimal
	}
	CreditAccount struct {
		AccountID string
		Amount    decimal.Decimal
	}
	ReverseDebit struct {
		AccountID string
		Amount    decimal.Decimal
	}
)

type TransferSaga struct {
	TransferID, SourceAccountID, TargetAccountID string
	Amount                                       decimal.Decimal
	DebitConfirmed, CreditConfirmed              bool
}

const paymentTimeout = "payment-timeout"

func (s *TransferSaga) OnRequested(e TransferRequested, commands saga.Commands, deadlines saga.Deadlines) {
	s.TransferID, s.SourceAccountID, s.TargetAccountID, s.Amount = e.TransferID, e.SourceAccountID, e.TargetAccountID, e.Amount
	commands.Send(DebitAccount{AccountID: e.SourceAccountID, Amount: e.Amount})
	deadlines.Schedule(paymentTimeout, 30*time.Minute)
}

func (s *TransferSaga) OnDebitConfirmed(_ DebitConfirmed, commands saga.Commands, deadlines saga.Deadlines) {
	s.DebitConfirmed = true
	commands.Send(CreditAccount{AccountID: s.TargetAccountID, Amount: s.Amount})
	deadlines.Cancel(paymentTimeout)
}

func (s *TransferSaga) OnCreditConfirmed(_ CreditConfirmed, lifecycle saga.Lifecycle) {
	s.CreditConfirmed = true
	lifecycle.End()
}

func (s *TransferSaga) OnPaymentTimeout(commands saga.Commands) {
	commands.Send(ReverseDebit{AccountID: s.SourceAccountID, Amount: s.Amount})
}

var Transfers = fxmodule.Saga[TransferSaga]("transfer-saga",
	saga.Start((*TransferSaga).OnRequested, saga.By("transferId")),
	saga.On((*TransferSaga).OnDebitConfirmed, saga.By("transferId")),
	saga.On((*TransferSaga).OnCreditConfirmed, saga.By("transferId")),
	saga.OnDeadline(paymentTimeout, (*TransferSaga).OnPaymentTimeout, saga.Ends()),
)

type bank struct{ told chan string }

func (b *bank) Debit(_ context.Context, c DebitAccount) error {
	b.told <- fmt.Sprintf("debit %s %s", c.AccountID, c.Amount)
	return nil
}

func (b *bank) Credit(_ context.Context, c CreditAccount) error {
	b.told <- fmt.Sprintf("credit %s %s", c.AccountID, c.Amount)
	return nil
}

func (b *bank) Reverse(_ context.Context, c ReverseDebit) error {
	b.told <- fmt.Sprintf("reverse %s %s", c.AccountID, c.Amount)
	return nil
}

// A transfer on embedded SQLite: the saga asks for the debit, and for the credit when the debit is confirmed.
func Example() {
	folder, err := os.MkdirTemp("", "norn")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	banks := &bank{told: make(chan string)}
	var engine *saga.Engine
	app := fx.New(
		Transfers,
		fxmodule.CommandHandler(banks.Debit),
		fxmodule.CommandHandler(banks.Credit),
		fxmodule.CommandHandler(banks.Reverse),
		fxmodule.ConfigFile(""),
		fxmodule.Override("database.url", "sqlite://"+filepath.Join(folder, "norn.db")),
		fx.Supply(slog.New(slog.DiscardHandler)), fx.NopLogger,
		fx.Populate(&engine),
		fxmodule.Module,
	)
	ctx := context.Background()
	if err := app.Start(ctx); err != nil {
		panic(err)
	}
	defer func() { _ = app.Stop(ctx) }()

	amount := decimal.RequireFromString("12.34")
	_ = engine.Handle(ctx, TransferRequested{"t1", "alice", "bob", amount})
	fmt.Println(<-banks.told)
	_ = engine.Handle(ctx, DebitConfirmed{"t1"})
	fmt.Println(<-banks.told)
	_ = engine.Handle(ctx, CreditConfirmed{"t1"})
	transfer, _ := engine.Instance(ctx, saga.Key{Type: "transfer-saga", ID: "t1"})
	fmt.Println("ended:", transfer.Ended)
	// Output:
	// debit alice 12.34
	// credit bob 12.34
	// ended: true
}

func TestGoBlocksOfThePagesStandInTheSource(t *testing.T) {
	var source strings.Builder
	pages := []string{"README.md"}
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		switch filepath.Ext(path) {
		case ".go":
			text, err := os.ReadFile(path)
			source.WriteString(squeezed(string(text)))
			return err
		case ".md":
			if strings.HasPrefix(path, "docs") || strings.HasPrefix(path, "examples") {
				pages = append(pages, path)
			}
		}
		return err
	})
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			require.True(t, strings.Contains(source.String(), squeezed(block[1])), "%s shows Go code that no Go file has:\n%s", page, block[1])
		}
	}
}

func TestPagesLinkToWhatThereIs(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("docs/decisions/*.md")
	require.NoError(t, err)
	for _, page := range append(append(pages, more...), "README.md", "CONTRIBUTING.md", "examples/transfer/README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([\w./-]+\.\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(link[1], "://") {
				require.FileExists(t, filepath.Join(filepath.Dir(page), link[1]), "%s links to it", page)
			}
		}
	}
}

func TestOperationsPageQuotesTheWarningsAsTheyAre(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "operations.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "## What do the warnings mean?")
	table, _, _ := strings.Cut(rest, "## Parked work")
	quoted := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1)
	require.NotEmpty(t, quoted)
	var source strings.Builder
	for _, folder := range []string{"saga", "poller", "outbox", "lease", "retry", "fxmodule"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			source.Write(text)
		}
	}
	for _, text := range quoted {
		if text[1] != "SAGA_" {
			require.True(t, strings.Contains(source.String(), text[1]), "docs/operations.md quotes %q, and nothing logs it", text[1])
		}
	}
}

var space = regexp.MustCompile(`\s+`)

// squeezed is code with its white space evened out.
func squeezed(code string) string { return space.ReplaceAllString(strings.TrimSpace(code), " ") }
