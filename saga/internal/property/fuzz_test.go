package property

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the document and the path, reading ends, and the values of a path are those of its elements.
func FuzzValues(f *testing.F) {
	f.Add(`{"a":{"b":["x","",{"c":"y"}]}}`, "a/b")
	f.Add(`{"a":[{"b":1},{"b":null},{"b":[true,"x"]}]}`, "a/b")
	f.Add(`[]`, "")
	f.Add(`{"":{"":"x"}}`, "/")
	f.Fuzz(func(t *testing.T, document, path string) {
		var v any
		if json.Unmarshal([]byte(document), &v) != nil {
			return
		}
		got, err := Values(v, path)
		again, errAgain := Values(&v, path)
		require.Equal(t, err == nil, errAgain == nil)
		require.Equal(t, got, again)
		require.False(t, slices.Contains(got, ""))
		twice, err2 := Values([]any{v, v}, path)
		if err == nil {
			require.NoError(t, err2)
			require.Len(t, twice, 2*len(got))
		}
	})
}

// What Check accepts, Values can read.
func FuzzCheck(f *testing.F) {
	for _, path := range []string{"orderId", "inner/deep/a", "list/lines", "any/k", "float", "a//b", "ID", "list"} {
		f.Add(path, "x")
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		if Check(reflect.TypeFor[event](), path) != nil {
			return
		}
		e := event{OrderID: value, Inner: &inner{Lines: []string{value}, Deep: map[string][]int{value: {1}}}, List: []inner{{Lines: []string{value, ""}}}}
		_, err := Values(e, path)
		require.NoError(t, err)
	})
}
