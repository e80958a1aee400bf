package saga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Codec turns states and payloads into the text that is stored, and back. Marshal must give UTF-8
// without NUL, and fail rather than lose anything. It must be safe for concurrent use.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, into any) error
}

// JSON is the default codec: encoding/json, made faithful. Text that is not UTF-8 is refused instead of
// replaced, types with unexported fields are refused unless they encode themselves or tag such fields json:"-", and
// numbers in fields of type any come back as json.Number.
type JSON struct{}

// Marshal implements [Codec].
func (JSON) Marshal(v any) ([]byte, error) {
	if t := reflect.TypeOf(v); t != nil {
		if err := lossless(t); err != nil {
			return nil, err
		}
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	data := bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	if replaced(data) {
		return nil, errors.New("json: a string is not UTF-8")
	}
	return data, nil
}

// replaced finds the escape that encoding/json writes for a broken byte. A valid U+FFFD is written as
// itself, so the escape has no other source but raw JSON made elsewhere.
func replaced(data []byte) bool {
	for {
		i := bytes.Index(data, []byte(`\ufffd`))
		if i < 0 {
			return false
		}
		backslashes := 0
		for j := i - 1; j >= 0 && data[j] == '\\'; j-- {
			backslashes++
		}
		if backslashes%2 == 0 {
			return true
		}
		data = data[i+1:]
	}
}

// Unmarshal implements [Codec].
func (JSON) Unmarshal(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("json: more than one value")
	}
	return nil
}
