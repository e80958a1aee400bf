package sagatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/norn-go/norn/saga"
)

// Codec checks that a codec of one's own keeps what norn stores with it. t goes on after a failure, so that all
// violations show at once. Run it under the race detector.
//
//   - What is stored comes back equal: integers of any size, also beyond 64 bits; floats to the last bit; decimals;
//     bytes; times; strings with NUL and with every rune there is, as values and as keys of maps; a json.Number in a
//     field of type any as a json.Number of the same digits; pointers, slices and maps in each other.
//   - The text is UTF-8 without NUL.
//   - What cannot be kept is an error of Marshal and no panic, such as a channel. Strings that are not UTF-8, NaN and
//     infinities may be kept or refused, but are never changed into something else.
//   - A text that is not a whole value is an error of Unmarshal: none, half of one, or two.
//   - Marshal does not write again into a text that it gave away, and Unmarshal keeps no part of the text that it was given,
//     nor changes it.
//   - All that is true also when many goroutines use the codec at once.
func Codec(t testing.TB, codec saga.Codec) {
	t.Helper()
	c := &codecCheck{t, codec}
	for name, value := range faithful() {
		c.keeps(name, value)
	}
	for name, value := range questionable() {
		c.keepsOrRefuses(name, value)
	}
	for name, value := range map[string]any{"a channel": make(chan int), "a function in a field": struct{ F func() }{func() {}}} {
		if text, err := c.marshal(value); err == nil {
			t.Errorf("sagatest: codec: %s is no error of Marshal: it gave %q", name, text)
		}
	}
	c.refusesParts()
	c.sharesNothing()
	c.worksInParallel()
}

// stored is a value as sagas have them; its fields stand for all that a codec may lose.
type stored struct {
	Text    string
	Int     int64
	Uint    uint64
	Float   float64
	Small   float32
	Big     *big.Int
	Decimal *big.Rat
	Number  json.Number
	Any     any
	Map     map[string]any
	Bytes   []byte
	Time    time.Time
	Next    *next
	List    []string
}

type next struct {
	Int  int64
	Text string
	Next *next
}

func faithful() map[string]stored {
	huge := new(big.Int).Exp(big.NewInt(-7), big.NewInt(301), nil)
	number := json.Number("9007199254740993") // the first integer that a float64 has not
	values := map[string]stored{
		"an empty value":              {},
		"integers at their limits":    {Int: math.MinInt64, Uint: math.MaxUint64, Next: &next{Int: math.MaxInt64}},
		"an integer beyond 64 bits":   {Big: huge},
		"the smallest float":          {Float: math.SmallestNonzeroFloat64, Small: math.SmallestNonzeroFloat32},
		"the largest float":           {Float: -math.MaxFloat64, Small: math.MaxFloat32},
		"a float with all its bits":   {Float: 0.1 + 0.2, Small: 1.0 / 3},
		"a negative zero":             {Float: math.Copysign(0, -1)},
		"a decimal":                   {Decimal: big.NewRat(1, 1_000_000_007)},
		"a number of many digits":     {Number: "1234567890123456789012345678901234567890.5"},
		"a json.Number in any":        {Any: number},
		"a number too large in any":   {Any: json.Number("1e400")},
		"a json.Number deep in any":   {Any: []any{map[string]any{"n": number}, "x", nil, true}},
		"a json.Number in a map":      {Map: map[string]any{"n": json.Number("18446744073709551616"), "m": json.Number("-0.10")}},
		"a string with NUL":           {Text: "a\x00b\x00", List: []string{"\x00"}},
		"NUL in any and in a key":     {Any: "\x00", Map: map[string]any{"k\x00": "v\x00"}},
		"what looks like an escape":   {Text: `\ufffd \\u0000 \" \x00 %00 &#0;`},
		"quotes, tags and separators": {Text: "\"'`<script>&amp;</script>\u2028\u2029\r\n\t\\"},
		"the replacement character":   {Text: "\ufffd", Map: map[string]any{"\ufffd": "\ufffd"}},
		"space at both ends":          {Text: " \n a \t", List: []string{"", " ", "\n"}},
		"bytes":                       {Bytes: []byte{0, 255, 10, 0x80}},
		"a time":                      {Time: time.Date(2024, 2, 29, 23, 59, 59, 999999999, time.UTC)},
		"pointers":                    {Next: &next{Text: "1", Next: &next{Text: "2"}}},
	}
	for from := rune(0); from <= utf8.MaxRune; from += 1 << 16 {
		values[fmt.Sprintf("every rune from %U", from)] = stored{Text: runes(from, from+1<<16)}
	}
	return values
}

// runes is all valid runes from one to before another, those that are none left out.
func runes(from, to rune) string {
	var b strings.Builder
	for r := from; r < to; r++ {
		if utf8.ValidRune(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func questionable() map[string]stored {
	return map[string]stored{
		"a broken byte":                {Text: "a\xffb"},
		"a broken byte in a key":       {Map: map[string]any{"\xff": "x"}},
		"a broken byte in any":         {Any: []any{"fine", "\xc3"}},
		"half a surrogate pair":        {Text: "\xed\xa0\x80"},
		"NaN":                          {Float: math.NaN()},
		"infinity":                     {Float: math.Inf(1)},
		"a number that is none":        {Number: "abc"},
		"a number that is none in any": {Any: json.Number("1\x00")},
	}
}

type codecCheck struct {
	t     testing.TB
	codec saga.Codec
}

func (c *codecCheck) marshal(v any) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.t.Errorf("sagatest: codec: Marshal of a %T panics: %v", v, r)
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.codec.Marshal(v)
}

func (c *codecCheck) unmarshal(text []byte, into any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.t.Errorf("sagatest: codec: Unmarshal of %s panics: %v", excerpt(text), r)
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.codec.Unmarshal(text, into)
}

// keeps checks a value that every codec must keep.
func (c *codecCheck) keeps(name string, want stored) bool {
	c.t.Helper()
	text, err := c.marshal(want)
	if err != nil {
		c.t.Errorf("sagatest: codec: %s: Marshal: %v", name, err)
		return false
	}
	return c.compare(name, text, want)
}

// keepsOrRefuses checks a value that a codec may refuse.
func (c *codecCheck) keepsOrRefuses(name string, want stored) {
	c.t.Helper()
	if text, err := c.marshal(want); err == nil {
		c.compare(name, text, want)
	}
}

func (c *codecCheck) compare(name string, text []byte, want stored) bool {
	c.t.Helper()
	switch {
	case !utf8.Valid(text):
		c.t.Errorf("sagatest: codec: %s: the text is not UTF-8: %s", name, excerpt(text))
	case bytes.IndexByte(text, 0) >= 0:
		c.t.Errorf("sagatest: codec: %s: the text contains NUL: %s", name, excerpt(text))
	}
	var got stored
	if err := c.unmarshal(text, &got); err != nil {
		c.t.Errorf("sagatest: codec: %s: Unmarshal of %s: %v", name, excerpt(text), err)
		return false
	}
	field := loss(got, want)
	if field != "" {
		c.t.Errorf("sagatest: codec: %s does not come back as it went: %s, stored as %s", name, field, excerpt(text))
	}
	return field == ""
}

// loss names the first field of two values that is not the same, and how; empty: there is none.
func loss(got, want stored) string {
	if want.Number == "" && got.Number == "0" {
		got.Number = "" // encoding/json: a json.Number without digits is 0
	}
	if got.Time.Equal(want.Time) {
		got.Time = want.Time
	}
	if math.Float64bits(got.Float) != math.Float64bits(want.Float) && !(math.IsNaN(got.Float) && math.IsNaN(want.Float)) {
		return fmt.Sprintf("Float is %v, want %v", got.Float, want.Float)
	}
	got.Float = want.Float
	if math.IsNaN(got.Float) {
		got.Float, want.Float = 0, 0
	}
	a, b := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("%s is %s, want %s", a.Type().Field(i).Name, excerpt(fmt.Appendf(nil, "%#v", x)), excerpt(fmt.Appendf(nil, "%#v", y)))
		}
	}
	return ""
}

func (c *codecCheck) refusesParts() {
	c.t.Helper()
	text, err := c.marshal(stored{Text: "whole", Int: 7, List: []string{"a", "b"}})
	if err != nil {
		return // reported above
	}
	for name, part := range map[string][]byte{
		"no text at all": {}, "half of a text": text[:len(text)/2], "two texts in one": append(bytes.Clone(text), text...),
	} {
		var got stored
		if err := c.unmarshal(part, &got); err == nil {
			c.t.Errorf("sagatest: codec: %s is no error of Unmarshal: %s", name, excerpt(part))
		}
	}
}

func (c *codecCheck) sharesNothing() {
	c.t.Helper()
	want := stored{Text: "first", Any: "first", Bytes: []byte("first"), List: []string{"first"}}
	text, err := c.marshal(want)
	if err != nil {
		return // reported above
	}
	before := bytes.Clone(text)
	if _, err := c.marshal(stored{Text: "other", Any: "other", Bytes: []byte("other"), List: []string{"other"}}); err == nil && !bytes.Equal(before, text) {
		c.t.Errorf("sagatest: codec: Marshal writes into the text that it gave before: %s", excerpt(text))
	}
	var got stored
	given := bytes.Clone(before)
	if err := c.unmarshal(given, &got); err != nil {
		return // reported above
	}
	if !bytes.Equal(given, before) {
		c.t.Errorf("sagatest: codec: Unmarshal changes the text that it is given: %s, was %s", excerpt(given), excerpt(before))
	}
	for i := range given {
		given[i] = '#'
	}
	if field := loss(got, want); field != "" {
		c.t.Errorf("sagatest: codec: Unmarshal keeps a part of the text that it was given: changed afterwards, %s", field)
	}
}

func (c *codecCheck) worksInParallel() {
	c.t.Helper()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				want := fmt.Sprint(i, "-", j, strings.Repeat("x", i*j))
				if !c.keeps("a value beside others", stored{Text: want, Map: map[string]any{want: want}}) {
					return
				}
			}
		})
	}
	group.Wait()
}

// excerpt is text short enough for a failure.
func excerpt(text []byte) string {
	const most = 120
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
