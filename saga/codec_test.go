package saga_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

type everything struct {
	Text    string
	Int     int64
	Uint    uint64
	Float   float64
	Big     *big.Int
	Decimal decimal.Decimal
	Number  json.Number
	Any     any
	Map     map[string]any
	Bytes   []byte
	Raw     json.RawMessage
}

// SEMANTICS 4.14
func TestEncodingIsFaithful(t *testing.T) {
	huge, ok := new(big.Int).SetString("123456789012345678901234567890123456789012345678901234567890", 10)
	require.True(t, ok)
	want := everything{
		Text: "NUL \x00, replacement \ufffd, astral 𝄞, <html> & \u2028 \\ufffd \"quoted\"", Int: math.MinInt64, Uint: math.MaxUint64, Float: math.SmallestNonzeroFloat64,
		Big: huge, Decimal: decimal.RequireFromString("0.1000000000000000000000000000000000001"), Number: "1234567890123456789012345678901234567890.5",
		Any: []any{json.Number("9007199254740993"), "x\x00", nil, true, map[string]any{"k\x00": json.Number("1e400")}},
		Map: map[string]any{"\ufffd": json.Number("18446744073709551616")}, Bytes: []byte{0, 255}, Raw: json.RawMessage(`{"a":12345678901234567890.10}`),
	}
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		d, err := saga.Define[everything]("everything", saga.Start(func(s *everything, _ Begin, c saga.Commands) { *s = want; c.Send(want) }, saga.By("id")),
			saga.On(func(s *everything, _ Next) {
				require.True(t, want.Decimal.Equal(s.Decimal))
				s.Decimal = want.Decimal
				require.Equal(t, want, *s)
			}, saga.By("id")))
		require.NoError(t, err)
		e := newEngine(t, db, saga.Config{}, d)
		require.NoError(t, e.Handle(t.Context(), Begin{ID: "1"}))
		require.NoError(t, e.Handle(t.Context(), Next{ID: "1"}))
	})
}

// SEMANTICS 4.14
func TestWhatCannotBeEncodedFaithfullyIsRefused(t *testing.T) {
	for _, v := range []any{
		"\xff", map[string]int{"\xff": 1}, []any{"fine", "\xc3"}, math.NaN(), math.Inf(1), json.Number("abc"), json.Number("1\x00"),
		struct{ C chan int }{}, json.RawMessage("{"), json.RawMessage("\"\xff\""), struct{ X *struct{ Y string } }{&struct{ Y string }{"\xed\xa0\x80"}},
	} {
		types, err := saga.NewTypes(saga.JSON{})
		require.NoError(t, err)
		_, _, err = types.Encode(v)
		require.Error(t, err, "%#v", v)
	}
	require.ErrorContains(t, saga.JSON{}.Unmarshal([]byte(`{} {}`), &struct{}{}), "more than one value")
	require.Error(t, saga.JSON{}.Unmarshal(nil, &struct{}{}))
}

// What is encoded decodes to an equal value, or was refused.
func FuzzJSON(f *testing.F) {
	f.Add("text", int64(1), 1.5, `{"a":[1,"x",null]}`)
	f.Add("\x00\ufffd\\ufffd", int64(math.MinInt64), math.MaxFloat64, `12345678901234567890123`)
	f.Add("\xff", int64(0), math.NaN(), `"\ufffd"`)
	f.Add("<&>\u2028", int64(0), math.Copysign(0, -1), `{"\u0000":-0.0}`)
	f.Fuzz(func(t *testing.T, text string, i int64, float float64, document string) {
		type value struct {
			Text  string
			Map   map[string]string
			Int   int64
			Float float64
			Any   any
		}
		want := value{Text: text, Map: map[string]string{text: text}, Int: i, Float: float}
		if (saga.JSON{}).Unmarshal([]byte(document), &want.Any) != nil {
			want.Any = nil
		}
		data, err := saga.JSON{}.Marshal(want)
		if err != nil {
			return
		}
		var got value
		require.NoError(t, saga.JSON{}.Unmarshal(data, &got))
		require.Equal(t, want, got)
	})
}
