package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
)

func TestStableIDFollowsFromItsPartsAlone(t *testing.T) {
	require.Equal(t, schema.StableID("order-saga", "o1"), schema.StableID("order-saga", "o1"))
	require.Len(t, schema.StableID(), 32)
	seen := map[string]bool{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"1:a"}, {"a", "1:a"}} {
		id := schema.StableID(parts...)
		require.False(t, seen[id], parts)
		seen[id] = true
	}
}
