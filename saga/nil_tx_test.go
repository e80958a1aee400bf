package saga_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestHandleTxWithoutATransactionIsAnError(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		require.ErrorContains(t, s.HandleTx(t.Context(), nil, Begin{ID: "a"}), "nil")
		s.empty()
	})
}
