package poller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestSweepByHandWaitsForWhatItDispatched(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { time.Sleep(time.Minute); return nil }))
		put(t, db, time.Now(), ids("a", 25)...)
		require.NoError(t, n.Sweep(t.Context()))
		require.Len(t, n.seen(&n.fired), 25)
		require.False(t, n.Stats().Leading)
	})
}

func TestSweepByHandIsRefusedWhileAnotherNodeLeads(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		defer newNode(t, db).run(t)()
		synctest.Wait()
		require.ErrorIs(t, newNode(t, db).Sweep(t.Context()), lease.ErrHeld)
	})
}

func TestSweepByHandSharesTheLeaseOfRun(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		defer n.run(t)()
		synctest.Wait()
		put(t, db, time.Now(), "a")
		require.NoError(t, n.Sweep(t.Context()))
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
		require.True(t, n.Stats().Leading)
		require.EqualValues(t, 1, n.locker.Term())
	})
}

func TestSweepByHandEndsWithItsContext(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { cancel(); return nil }))
		put(t, db, time.Now(), ids("a", 25)...)
		require.ErrorIs(t, n.Sweep(ctx), context.Canceled)
		rest := len(pending(t, db))
		require.NotZero(t, rest)
		require.Len(t, n.seen(&n.fired), 25-rest)
	})
}

func TestSweepSelectsOnlyWhatWasDueAtItsStart(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { time.Sleep(time.Minute); return nil }))
		put(t, db, time.Now(), ids("a", 30)...)
		put(t, db, time.Now().Add(time.Second), "late")
		require.NoError(t, n.Sweep(t.Context()))
		require.Len(t, n.seen(&n.fired), 30)
		require.Equal(t, "late", pending(t, db)[0].ID)
	})
}
