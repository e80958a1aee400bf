package sagatest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

func TestNornsCodecKeepsTheContract(t *testing.T) {
	sagatest.Codec(t, saga.JSON{})
}

// ledger takes down the failures of a suite, which may come from several goroutines.
type ledger struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (l *ledger) Helper() {}
func (l *ledger) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

func (l *ledger) String() string { return strings.Join(l.failures, "\n") }

type codecFuncs struct {
	marshal   func(v any) ([]byte, error)
	unmarshal func(data []byte, into any) error
}

func (c codecFuncs) Marshal(v any) ([]byte, error) {
	if c.marshal == nil {
		return saga.JSON{}.Marshal(v)
	}
	return c.marshal(v)
}

func (c codecFuncs) Unmarshal(data []byte, into any) error {
	if c.unmarshal == nil {
		return saga.JSON{}.Unmarshal(data, into)
	}
	return c.unmarshal(data, into)
}

func TestCodecThatBreaksTheContractIsFound(t *testing.T) {
	var last []byte
	var mu sync.Mutex
	for name, broken := range map[string]struct {
		codec codecFuncs
		want  string
	}{
		"numbers through float64": {codecFuncs{unmarshal: json.Unmarshal}, "json.Number in any does not come back as it went: Any is"},
		"broken bytes replaced":   {codecFuncs{marshal: json.Marshal}, "a broken byte does not come back as it went: Text is"},
		"NUL removed": {codecFuncs{marshal: func(v any) ([]byte, error) {
			text, err := saga.JSON{}.Marshal(v)
			return bytes.ReplaceAll(text, []byte(`\u0000`), nil), err
		}}, "a string with NUL does not come back as it went"},
		"NUL in the text": {codecFuncs{
			marshal: func(v any) ([]byte, error) {
				text, err := saga.JSON{}.Marshal(v)
				return append(text, 0), err
			},
			unmarshal: func(data []byte, into any) error {
				return saga.JSON{}.Unmarshal(bytes.TrimSuffix(data, []byte{0}), into)
			},
		}, "the text contains NUL"},
		"text that is not UTF-8": {codecFuncs{
			marshal: func(v any) ([]byte, error) {
				text, err := saga.JSON{}.Marshal(v)
				return append(text, 0xff), err
			},
			unmarshal: func(data []byte, into any) error {
				return saga.JSON{}.Unmarshal(bytes.TrimSuffix(data, []byte{0xff}), into)
			},
		}, "the text is not UTF-8"},
		"astral runes lost": {codecFuncs{marshal: func(v any) ([]byte, error) {
			text, err := saga.JSON{}.Marshal(v)
			return bytes.ReplaceAll(text, []byte("\U0001F600"), []byte("?")), err
		}}, "every rune from U+10000 does not come back"},
		"zero for what cannot be stored": {codecFuncs{marshal: func(v any) ([]byte, error) {
			if text, err := (saga.JSON{}).Marshal(v); err == nil {
				return text, nil
			}
			return []byte("{}"), nil
		}}, "a channel is no error of Marshal"},
		"a panic": {codecFuncs{marshal: func(v any) ([]byte, error) {
			text, err := saga.JSON{}.Marshal(v)
			if err != nil {
				panic(err)
			}
			return text, nil
		}}, "panics"},
		"the rest of a text ignored": {codecFuncs{unmarshal: func(data []byte, into any) error {
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.UseNumber()
			return decoder.Decode(into)
		}}, "two texts in one is no error of Unmarshal"},
		"an empty text taken": {codecFuncs{unmarshal: func(data []byte, into any) error {
			if len(data) == 0 {
				return nil
			}
			return saga.JSON{}.Unmarshal(data, into)
		}}, "no text at all is no error of Unmarshal"},
		"one buffer for all": {codecFuncs{marshal: func(v any) ([]byte, error) {
			text, err := saga.JSON{}.Marshal(v)
			mu.Lock()
			defer mu.Unlock()
			if bytes.Contains(text, []byte(`"other"`)) {
				copy(last, text)
				return last, nil
			}
			last = text
			return text, err
		}}, "Marshal writes into the text that it gave before"},
		"the text given is used as scratch": {codecFuncs{unmarshal: func(data []byte, into any) error {
			defer func() { clear(data) }()
			return saga.JSON{}.Unmarshal(data, into)
		}}, "Unmarshal changes the text that it is given"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{TB: t}
			sagatest.Codec(l, broken.codec)
			require.Contains(t, l.String(), broken.want)
		})
	}
}
