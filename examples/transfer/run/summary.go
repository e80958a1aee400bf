package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/saga"
)

// Summary is what came of an input's transfers, as the tables tell it: after an interruption and another run
// it counts what both did.
type Summary struct {
	Transfers      int            `json:"transfers"`
	Completed      int            `json:"completed"`
	Compensated    int            `json:"compensated"`
	Commands       map[string]int `json:"commands"` // that the banks carried out, by type
	DeadlinesFired int            `json:"deadlinesFired"`
	DurationMs     int64          `json:"durationMs"` // of this run
	Conserved      bool           `json:"conserved"`  // whether all accounts together hold what they opened with

	money  bank.Money
	open   []string // transfers that have not ended
	parked []saga.Parked
}

func (a *app) summarize(ctx context.Context, orders []input.Order) (Summary, error) {
	s := Summary{Transfers: len(orders), Commands: map[string]int{"DebitAccount": 0, "CreditAccount": 0, "ReverseDebit": 0, "ReverseCredit": 0}}
	open := make(map[string]bool, len(orders))
	for _, o := range orders {
		open[o.TransferID] = true
	}
	bookings, err := bank.Bookings(ctx, a.db)
	if err != nil {
		return s, fmt.Errorf("summary: %w", err)
	}
	for _, b := range bookings {
		if open[b.TransferID] {
			s.Commands[b.Command]++
		}
	}
	for i, err := range a.engine.Instances(ctx, saga.Query{Type: transfer.Type, Status: saga.Ended}) {
		if err == nil && open[i.ID] {
			delete(open, i.ID)
			err = s.add(i)
		}
		if err != nil {
			return s, fmt.Errorf("summary: %w", err)
		}
	}
	for id := range open {
		s.open = append(s.open, id)
	}
	slices.Sort(s.open)
	for p, err := range a.engine.Parked(ctx, saga.Query{Type: transfer.Type}) {
		if err != nil {
			return s, fmt.Errorf("summary: %w", err)
		}
		s.parked = append(s.parked, p)
	}
	if s.money, err = bank.Count(ctx, a.db); err != nil {
		return s, fmt.Errorf("summary: %w", err)
	}
	s.Conserved = s.money.Balance == s.money.Opened
	return s, nil
}

func (s *Summary) add(ended saga.Instance) error {
	state, err := transfer.Of(ended)
	if err != nil {
		return err
	}
	if state.Completed() {
		s.Completed++
	} else {
		s.Compensated++
	}
	if state.TimedOut != "" {
		s.DeadlinesFired++
	}
	return nil
}

// sound is an error that wraps [ErrUnsound] if money is missing, a transfer is open, or work is parked.
func (s *Summary) sound() error {
	var errs []error
	if !s.Conserved {
		errs = append(errs, fmt.Errorf("%w: the accounts opened with %s and hold %s", ErrUnsound, money(s.money.Opened), money(s.money.Balance)))
	}
	if n := len(s.open); n > 0 {
		errs = append(errs, fmt.Errorf("%w: %s open, beginning with %q", ErrUnsound, count(n, "transfer"), s.open[0]))
	}
	for _, p := range s.parked {
		errs = append(errs, fmt.Errorf("%w: %s %s of %s is parked: %s", ErrUnsound, p.Kind, p.Name, p.Saga, p.LastError))
	}
	return errors.Join(errs...)
}

func (s *Summary) write(to io.Writer, asJSON bool) error {
	text := s.text()
	if asJSON {
		line, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("summary: %w", err)
		}
		text = string(line) + "\n"
	}
	if _, err := io.WriteString(to, text); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}

func (s *Summary) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %v\n\n", count(s.Transfers, "transfer"), (time.Duration(s.DurationMs) * time.Millisecond).Round(100*time.Millisecond))
	row := func(label string, value any, meaning string) {
		fmt.Fprintf(&b, "  %-16s %8v   %s\n", label, value, meaning)
	}
	row("completed", s.Completed, "both banks confirmed in time: the money moved")
	row("compensated", s.Compensated, "a confirmation was lost or late: everything was taken back")
	if len(s.open) > 0 {
		row("open", len(s.open), "neither of these yet")
	}
	row("deadlines fired", s.DeadlinesFired, "timeouts that ended a transfer")
	fmt.Fprintf(&b, "\n  what the banks were told, each once\n")
	for _, c := range []struct{ name, meaning string }{
		{"DebitAccount", "take it from the source"},
		{"CreditAccount", "add it to the target"},
		{"ReverseCredit", "take it from the target again"},
		{"ReverseDebit", "give it back to the source"},
	} {
		row(c.name, s.Commands[c.name], c.meaning)
	}
	verdict := "conserved: all accounts together hold " + money(s.money.Balance) + ", as when they were opened"
	if !s.Conserved {
		verdict = "NOT CONSERVED: all accounts together hold " + money(s.money.Balance) + ", and opened with " + money(s.money.Opened)
	}
	fmt.Fprintf(&b, "\n  money %s\n", verdict)
	return b.String()
}

// money writes cents as an amount.
func money(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}

// count is "1 transfer" or "2 transfers".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
