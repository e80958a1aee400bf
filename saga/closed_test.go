package saga_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestAClosedEngineTakesNoEventAndCountsNoAttempt(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		s := newStage(t, db, saga.Config{})
		s.Close()
		require.ErrorIs(t, s.Handle(t.Context(), Begin{ID: "1"}), saga.ErrClosed)
		err := s.Dispatch(t.Context(), deadline.Due{Key: deadline.Key{Type: "story", ID: "1", Name: "t"}})
		require.ErrorIs(t, err, saga.ErrClosed)
		require.True(t, retry.IsUncounted(err))
		s.empty()
	})
}
