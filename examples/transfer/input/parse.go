package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// fields are the keys of a line, in the order they are written and reported.
var fields = []string{"transferId", "sourceAccountId", "targetAccountId", "amount", "debit", "credit"}

// parse reads one line. All its mistakes are reported together.
func parse(line []byte) (Order, error) {
	values, err := object(line)
	if err != nil {
		return Order{}, err
	}
	var o Order
	var errs []error
	read := func(field string, take func(text string) error) {
		text, ok := values[field]
		if !ok {
			errs = append(errs, fmt.Errorf("%s is missing", field))
		} else if err := take(text); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", field, err))
		}
	}
	read("transferId", func(text string) error { o.TransferID = text; return checkID(text) })
	read("sourceAccountId", func(text string) error { o.SourceAccountID = text; return checkID(text) })
	read("targetAccountId", func(text string) error { o.TargetAccountID = text; return checkID(text) })
	read("amount", func(text string) (err error) { o.Amount, err = parseAmount(text); return err })
	read("debit", func(text string) (err error) { o.Debit, err = ParseDelay(text); return err })
	read("credit", func(text string) (err error) { o.Credit, err = ParseDelay(text); return err })
	if o.SourceAccountID != "" && o.SourceAccountID == o.TargetAccountID {
		errs = append(errs, fmt.Errorf("sourceAccountId and targetAccountId are both %s", quoted(o.SourceAccountID)))
	}
	return o, errors.Join(errs...)
}

// object reads an object of texts. Unlike json.Unmarshal it refuses unknown keys, keys in another spelling
// and repeated keys, and names all of them.
func object(line []byte) (map[string]string, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is no JSON object")
	}
	values := map[string]string{}
	var errs []error
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		name := key.(string) // the decoder accepts no other key
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, notJSON(err)
		}
		var text string
		isText := raw[0] == '"' && json.Unmarshal(raw, &text) == nil
		_, repeated := values[name]
		switch {
		case !slices.Contains(fields, name):
			errs = append(errs, fmt.Errorf("unknown field %s (known: %s)", quoted(name), strings.Join(fields, ", ")))
			continue
		case repeated:
			errs = append(errs, fmt.Errorf("%s is given twice", name))
		case !isText:
			errs = append(errs, fmt.Errorf("%s must be a text in quotes, got %s", name, raw[:min(len(raw), 40)]))
		}
		values[name] = text
	}
	if _, err := d.Token(); err != nil {
		return nil, notJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("has something behind its JSON object")
	}
	return values, errors.Join(errs...)
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is no JSON: it ends in the middle")
	}
	return fmt.Errorf("is no JSON: %w", err)
}
