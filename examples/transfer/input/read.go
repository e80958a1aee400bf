package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shopspring/decimal"
)

// LineLimit is the most bytes a line may have.
const LineLimit = 64 << 10

// Refusal is a line that cannot be taken.
type Refusal struct {
	File   string
	Line   int // 1 first
	Reason string
}

// Error is "file:line: reason", as editors understand it.
func (r Refusal) Error() string { return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Reason) }

// ReadFile is [Read] on a file.
func ReadFile(path string) ([]Order, []Refusal, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("input: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return Read(path, f)
}

// Read reads all lines; file is the name in messages. Good lines become orders, in their order, and all
// bad ones refusals. Blank lines are passed over. The error is about the reading alone.
func Read(file string, from io.Reader) ([]Order, []Refusal, error) {
	r := &reader{file: file, seen: map[string]int{}, spent: map[string]decimal.Decimal{}}
	buffered := bufio.NewReaderSize(from, LineLimit+1)
	for {
		line, err := r.line(buffered)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fmt.Errorf("input: %s:%d: %w", file, r.number, err)
		}
		r.take(line)
		if err != nil {
			return r.orders, r.refusals, nil
		}
	}
}

type reader struct {
	file     string
	number   int
	orders   []Order
	refusals []Refusal
	seen     map[string]int             // transfer id → line
	spent    map[string]decimal.Decimal // account → what its orders take from it
}

// line reads the next line. Of one that is too long only the beginning is kept, which tells it apart.
func (r *reader) line(from *bufio.Reader) ([]byte, error) {
	r.number++
	line, err := from.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = from.ReadSlice('\n')
	}
	return long, err
}

func (r *reader) take(line []byte) {
	long := len(bytes.TrimRight(line, "\r\n")) > LineLimit
	line = bytes.TrimSpace(line)
	if r.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	switch {
	case long:
		r.refuse(fmt.Errorf("is longer than %d bytes", LineLimit))
	case len(line) > 0:
		order, err := parse(line)
		if err == nil {
			err = r.fits(order)
		}
		if err != nil {
			r.refuse(err)
			return
		}
		r.seen[order.TransferID] = r.number
		r.spent[order.SourceAccountID] = r.spent[order.SourceAccountID].Add(order.Amount)
		r.orders = append(r.orders, order)
	}
}

// fits holds an order against those before it.
func (r *reader) fits(o Order) error {
	if line, ok := r.seen[o.TransferID]; ok {
		return fmt.Errorf("transferId %s is also in line %d", quoted(o.TransferID), line)
	}
	if spent := r.spent[o.SourceAccountID].Add(o.Amount); spent.GreaterThan(Opening) {
		return fmt.Errorf("insufficient funds: account %s opens with %s and would have to pay %s",
			quoted(o.SourceAccountID), Opening.StringFixed(2), spent.StringFixed(2))
	}
	return nil
}

func (r *reader) refuse(err error) {
	reason := strings.ReplaceAll(err.Error(), "\n", "; ")
	r.refusals = append(r.refusals, Refusal{File: r.file, Line: r.number, Reason: reason})
}
