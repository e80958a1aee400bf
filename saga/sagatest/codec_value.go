package sagatest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

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
