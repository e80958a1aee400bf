package input

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/shopspring/decimal"
)

// Opening is what every account holds before its first transfer. No account may be asked to spend more
// than this in one input, so that no transfer depends on the order of the others.
var Opening = decimal.NewFromInt(1_000_000)

// Order is one line of the input: a transfer, and how the two banks will behave.
type Order struct {
	TransferID      string
	SourceAccountID string
	TargetAccountID string
	Amount          decimal.Decimal // more than 0, whole cents
	Debit, Credit   Delay
}

// Delay is after how long a bank confirms what it did. The zero Delay confirms at once.
type Delay struct {
	After time.Duration
	Never bool // the bank does its work, but the confirmation is lost
}

const never = "never"

// String is the delay as it stands in the input.
func (d Delay) String() string {
	if d.Never {
		return never
	}
	return d.After.String()
}

// ParseDelay reads a duration with a unit, or "never".
func ParseDelay(text string) (Delay, error) {
	if text == never {
		return Delay{Never: true}, nil
	}
	after, err := time.ParseDuration(text)
	switch {
	case err != nil || strings.TrimLeft(text, "+-0.") == "":
		return Delay{}, fmt.Errorf(`%s is no duration with a unit, such as "50ms", and not "never"`, quoted(text))
	case after < 0:
		return Delay{}, fmt.Errorf("%s is negative", quoted(text))
	}
	return Delay{After: after}, nil
}

const amountLength = 32

// parseAmount reads a positive decimal number of whole cents, written without an exponent.
func parseAmount(text string) (decimal.Decimal, error) {
	whole, cents, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if len(text) > amountLength || !digits(whole) || strings.Contains(text, ".") && !digits(cents) {
		return decimal.Zero, fmt.Errorf(`%s is no amount such as "12.34"`, quoted(text))
	}
	if len(cents) > 2 {
		return decimal.Zero, fmt.Errorf("%s has more than two decimals", quoted(text))
	}
	amount, err := decimal.NewFromString(text)
	switch {
	case err != nil:
		return decimal.Zero, fmt.Errorf("%s: %w", quoted(text), err)
	case !amount.IsPositive():
		return decimal.Zero, fmt.Errorf("%s is not more than 0", quoted(text))
	}
	return amount, nil
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

const idLength = 200

func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("is empty")
	case len(id) > idLength:
		return fmt.Errorf("has %d bytes, more than %d", len(id), idLength)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%q has a control character", id)
	}
	return nil
}

// quoted is text for a message: one line, and not endless.
func quoted(text string) string {
	const enough = 40
	if len(text) > enough {
		return fmt.Sprintf("%q…", text[:enough])
	}
	return fmt.Sprintf("%q", text)
}
