package property

import (
	"reflect"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
)

type typedID [2]byte

func (i typedID) MarshalText() ([]byte, error) { return []byte("id-" + string(i[:])), nil }

type inner struct {
	Lines []string
	Deep  map[string][]int
}

type event struct {
	OrderID string `json:"orderId"`
	Plain   int
	ID      typedID
	Amount  decimal.Decimal
	Inner   *inner
	List    []inner
	Any     any
	Float   float64
	Hidden  string `json:"-"`
}

func TestValuesAreReadAsText(t *testing.T) {
	e := event{
		OrderID: "o1", Plain: -7, ID: typedID{'a', 'b'}, Amount: decimal.RequireFromString("1.50"), Hidden: "h",
		Inner: &inner{Lines: []string{"x", "", "y"}, Deep: map[string][]int{"b": {3}, "a": {1, 2}}},
		List:  []inner{{Lines: []string{"p"}}, {Lines: []string{"q"}}},
		Any:   map[string]any{"k": true},
	}
	for path, want := range map[string][]string{
		"orderId": {"o1"}, "OrderID": nil, "plain": {"-7"}, "PLAIN": {"-7"}, "id": {"id-ab"}, "amount": {"1.5"},
		"inner/lines": {"x", "y"}, "inner/deep": {"1", "2", "3"}, "inner/deep/a": {"1", "2"}, "list/lines": {"p", "q"},
		"any/k": {"true"}, "any/none": nil, "nothing": nil, "hidden": nil, "inner/lines/deeper": nil,
	} {
		got, err := Values(e, path)
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
		require.NoError(t, Check(reflect.TypeFor[event](), path))
	}
	got, err := Values(event{}, "inner/lines")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestValuesThatAreNoTextAreRefused(t *testing.T) {
	_, err := Values(event{Float: 1}, "float")
	require.ErrorContains(t, err, `property "float": a float64 is no association value`)
	require.ErrorContains(t, Check(reflect.TypeFor[*event](), "float"), "float64")
	require.ErrorContains(t, Check(reflect.TypeFor[event](), "list"), "property.inner")
	require.ErrorContains(t, Check(reflect.TypeFor[event](), "a//b"), "empty name")
}
