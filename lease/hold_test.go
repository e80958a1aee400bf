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

func nothing(context.Context) error { return nil }

func TestSecondHolderIsRefused(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		first, second := locker(db), locker(db)
		require.NotEqual(t, first.Holder(), second.Holder())
		require.NoError(t, first.Hold(t.Context(), func(ctx context.Context) error {
			require.True(t, first.Held())
			require.False(t, second.Held())
			called := false
			err := second.Hold(ctx, func(context.Context) error { called = true; return nil })
			require.ErrorIs(t, err, lease.ErrHeld)
			require.ErrorContains(t, err, "lease: take sweep: lease held by another: "+first.Holder()+"-1, until ")
			require.False(t, called)
			require.ErrorIs(t, first.Hold(ctx, nothing), lease.ErrHeld)
			return nil
		}))
		require.NoError(t, second.Hold(t.Context(), nothing))
		require.False(t, first.Held())
	})
}

func TestOtherNamesAreOtherLeases(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		other := lease.New(db, "relay", lease.Config{})
		require.Equal(t, "relay", other.Name())
		require.Equal(t, lease.DefaultTTL, other.TTL())
		require.NoError(t, locker(db).Hold(t.Context(), func(ctx context.Context) error { return other.Hold(ctx, nothing) }))
	})
}

func TestTermsNeverRepeat(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		for term := int64(1); term <= 3; term++ {
			l := locker(db)
			require.Zero(t, l.Term())
			require.NoError(t, l.Hold(t.Context(), func(context.Context) error {
				require.Equal(t, term, l.Term())
				require.Equal(t, term, row(t, db).Term)
				require.Equal(t, l.Holder()+"-1", row(t, db).Holder)
				return nil
			}))
			require.Zero(t, l.Term())
		}
	})
}

func TestErrorOfWorkComesBack(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		mine := errors.New("mine")
		require.Equal(t, mine, locker(db).Hold(t.Context(), func(context.Context) error { return mine }))
	})
}

func TestPanicOfWorkIsAnErrorWithItsStack(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		err := locker(db).Hold(t.Context(), func(context.Context) error { panic("no") })
		require.ErrorContains(t, err, "lease: panic: no")
		require.ErrorContains(t, err, "hold_test.go")
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
	})
}

func TestEndedContextTakesNothing(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		mine := errors.New("mine")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(mine)
		require.ErrorIs(t, locker(db).Hold(ctx, func(context.Context) error { panic("called") }), mine)
		var n int
		require.NoError(t, db.Get(t.Context(), &n, "SELECT count(*) FROM {deadline_lock}"))
		require.Zero(t, n)
	})
}

func TestLeaseIsRenewedEveryThirdOfItsTTL(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		l := locker(db)
		begun := time.Now()
		work, stop := holding(t, l)
		for i := range 20 {
			synctest.Wait()
			require.WithinDuration(t, begun.Add(time.Duration(i)*ttl/3+ttl), row(t, db).Expires.Time, 0)
			time.Sleep(ttl / 3)
		}
		require.NoError(t, work.Err())
		require.NoError(t, stop())
		require.WithinDuration(t, time.Now(), row(t, db).Expires.Time, 0)
	})
}

func TestLossEndsTheContextBeforeTheLeaseExpires(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		l := locker(db)
		work, stop := holding(t, l)
		expires := row(t, db).Expires.Time
		mend := breakTable(t, db)
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), lease.ErrLost)
		require.ErrorContains(t, context.Cause(work), "lease: sweep: lease lost: term 1: not renewed in time")
		require.WithinDuration(t, expires.Add(-ttl/10), time.Now(), 0)
		require.False(t, l.Held())
		require.Zero(t, l.Term())
		mend()
		require.ErrorIs(t, locker(db).Hold(t.Context(), nothing), lease.ErrHeld)
		time.Sleep(ttl / 10)
		require.NoError(t, locker(db).Hold(t.Context(), nothing))
		require.ErrorIs(t, stop(), lease.ErrLost)
	})
}

func TestErrorOfWorkSurvivesALoss(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		mine := errors.New("mine")
		err := locker(db).Hold(t.Context(), func(ctx context.Context) error {
			takeOver(t, db)
			<-ctx.Done()
			return mine
		})
		require.ErrorIs(t, err, mine)
		require.ErrorIs(t, err, lease.ErrLost)
	})
}
