package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// Both have looked, and wait to write: a locked file holds up who writes, and not who reads.
func TestOfTwoThatFindTheLeaseFreeOneHoldsIt(t *testing.T) {
	address := schematest.URL(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		other := schematest.Open(t, address)
		holders := []*lease.Locker{locker(schematest.Connect(t, address)), locker(schematest.Connect(t, address))}
		over, ended := make(chan struct{}), make(chan error, len(holders))
		require.NoError(t, other.Tx(t.Context(), func(context.Context, *schema.Tx) error {
			for _, l := range holders {
				go func() {
					ended <- l.Hold(t.Context(), func(context.Context) error { <-over; return nil })
				}()
			}
			time.Sleep(time.Second)
			require.Empty(t, ended)
			return nil
		}))
		time.Sleep(time.Second)
		close(over)
		err := errors.Join(<-ended, <-ended)
		require.ErrorIs(t, err, lease.ErrHeld)
		require.NotErrorIs(t, err, lease.ErrLost)
		require.EqualValues(t, 1, row(t, other).Term)
	})
}
