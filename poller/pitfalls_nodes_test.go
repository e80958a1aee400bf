package poller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestP36StopBetweenSelectAndClaimLeavesNothingAcquired(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now(), "a")
		begun := make(chan struct{})
		first := newNode(t, db, beforeClaim(func(ctx context.Context, _ deadline.Due) error { close(begun); <-ctx.Done(); return context.Cause(ctx) }))
		stop := first.run(t)
		<-begun
		stop()
		second := newNode(t, db)
		require.NoError(t, second.Sweep(t.Context()))
		require.Equal(t, []string{"a"}, second.seen(&second.fired))
	})
}

func TestP37NodeWithAWrongClockFiresByTheDatabasesTime(t *testing.T) {
	address := schematest.URL(t, "postgres")
	synctest.Test(t, func(t *testing.T) { // the process believes that it is the year 2000
		db := schematest.Open(t, address)
		clock := schema.NewClock(db)
		_, err := clock.Measure(t.Context())
		require.NoError(t, err)
		n := newNode(t, db, config(func(c *poller.Config) { c.Now = clock.Now }))
		there, err := db.Now(t.Context())
		require.NoError(t, err)
		put(t, db, there.Add(-time.Second), "due")
		put(t, db, there.Add(time.Hour), "not due")
		require.NoError(t, n.Sweep(t.Context()))
		require.Equal(t, []string{"due"}, n.seen(&n.fired))
	})
}

func TestP38FailureRecordLeavesWhatWasRescheduledMeanwhile(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		due := time.Now().Add(time.Hour)
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error {
			put(t, db, due, "a")
			return retry.Permanent(errors.New("late"))
		}))
		put(t, db, time.Now(), "a")
		require.NoError(t, n.Sweep(t.Context()))
		row := pending(t, db)[0]
		require.Zero(t, row.Attempts)
		require.Nil(t, row.LastError)
		require.True(t, row.ParkedAt.IsZero())
		require.WithinDuration(t, due, row.NextAt.Time, 0)
		require.Zero(t, n.Stats().Failed)
	})
}

func TestP39ForeignRowsFillNoBatchAndAreLeft(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		foreign := deadline.Kind{Type: "other-saga", Name: "timer"}
		putNamed(t, db, foreign, time.Now().Add(-time.Hour), ids("a", 2000)...)
		putNamed(t, db, deadline.Kind{Type: sagaType, Name: "unknown"}, time.Now().Add(-time.Hour), "a")
		put(t, db, time.Now(), "mine")
		require.NoError(t, n.Sweep(t.Context()))
		require.Equal(t, []string{"mine"}, n.seen(&n.fired))
		require.EqualValues(t, 1, n.Stats().Reads)
		require.Contains(t, n.Stats().Foreign, foreign)
		require.Len(t, pending(t, db), 2001)
		for _, row := range pending(t, db) {
			require.Zero(t, row.Attempts)
		}
	})
}

func TestP42BlockedSweepWithAnExhaustedPoolKeepsTheLease(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error {
			var taken []*schema.Conn
			for range db.Stats().MaxOpenConnections - 1 {
				conn, err := db.Reserve(context.WithoutCancel(t.Context()))
				if err != nil {
					return err
				}
				taken = append(taken, conn)
			}
			time.Sleep(2 * ttl)
			for _, conn := range taken {
				_ = conn.Close()
			}
			return nil
		}))
		put(t, db, time.Now(), "a")
		defer n.run(t)()
		time.Sleep(2*ttl + time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, n.locker.Term())
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

func TestP43NodeThatWakesAfterATakeoverHasNoSecondEffect(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now(), "a")
		wake := make(chan struct{})
		frozen := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { <-wake; return nil }))
		defer frozen.run(t)()
		synctest.Wait()
		_, err := db.Exec(t.Context(), "UPDATE {deadline_lock} SET expires_at = {now}")
		require.NoError(t, err)
		successor := newNode(t, db)
		require.NoError(t, successor.Sweep(t.Context()))
		require.Equal(t, []string{"a"}, successor.seen(&successor.fired))
		close(wake)
		synctest.Wait()
		require.Empty(t, frozen.seen(&frozen.calls))
		require.Equal(t, 1, count(t, db, "{event}"))
	})
}

func TestP44StoppingNodeKeepsTheLeaseUntilItsHandlersAreBack(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		begun := make(chan struct{})
		n := newNode(t, db, config(func(c *poller.Config) { c.DrainTimeout = time.Hour }),
			beforeClaim(func(context.Context, deadline.Due) error { close(begun); time.Sleep(3 * ttl); return nil }))
		put(t, db, time.Now(), "a")
		stop := n.run(t)
		<-begun
		other := newNode(t, db)
		defer other.run(t)()
		stop()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
		require.Zero(t, other.Stats().Reads)
		time.Sleep(interval)
		synctest.Wait()
		require.True(t, other.Stats().Leading)
	})
}

func TestP45SelectedRowsBehindASlowHandlerAreNotHeldAfterTheLeaseIsLost(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		kinds := []deadline.Kind{}
		for _, name := range ids("n", 10) {
			kinds = append(kinds, deadline.Kind{Type: sagaType, Name: name})
			putNamed(t, db, kinds[len(kinds)-1], time.Now(), "one saga")
		}
		release := make(chan struct{})
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { <-release; return nil }))
		slow, err := poller.New(n.store, n.locker, kinded{n, kinds}, poller.Config{Interval: interval, BatchSize: 10, Logger: quiet})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- slow.Run(ctx) }()
		synctest.Wait()
		require.Equal(t, 10, slow.Stats().InFlight)
		_, err = db.Exec(t.Context(), "UPDATE {deadline_lock} SET holder = 'usurper', term = term + 1, expires_at = {now+}", time.Hour)
		require.NoError(t, err)
		time.Sleep(ttl)
		close(release)
		synctest.Wait()
		require.Equal(t, []int64{1, 9}, []int64{slow.Stats().Fired, slow.Stats().Dropped})
		require.Len(t, pending(t, db), 9)
		cancel()
		require.NoError(t, <-ended)
	})
}

// kinded is a node that knows other kinds.
type kinded struct {
	*node
	kinds []deadline.Kind
}

func (k kinded) Kinds() []deadline.Kind { return k.kinds }

func TestP48ChangingHoldersSkipNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		begun := time.Now()
		for i, id := range ids("a", 60) {
			put(t, db, begun.Add(time.Duration(i)*time.Second), id)
		}
		for range 31 {
			stop := newNode(t, db).run(t)
			time.Sleep(2 * time.Second)
			stop()
		}
		require.Equal(t, 60, count(t, db, "{event}"))
		require.Empty(t, pending(t, db))
	})
}

func TestP50PoisonRowStopsNoOther(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, beforeClaim(func(_ context.Context, d deadline.Due) error {
			switch d.ID {
			case "a00003":
				return retry.Permanent(errors.New("undecodable: \x00\xff"))
			case "a00017":
				panic("poison")
			}
			return nil
		}))
		put(t, db, time.Now(), ids("a", 45)...)
		require.NoError(t, n.Sweep(t.Context()))
		require.Len(t, n.seen(&n.fired), 43)
		rows := pending(t, db)
		require.Len(t, rows, 2)
		require.False(t, rows[0].ParkedAt.IsZero())
		require.Equal(t, 1, rows[1].Attempts)
	})
}

func TestP72TwoWeeksOffIsOneLateFiring(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now().Add(time.Hour), "a")
		time.Sleep(14 * 24 * time.Hour)
		n := newNode(t, db)
		for range 10 {
			stop := n.run(t)
			time.Sleep(30 * time.Second)
			stop()
		}
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
		require.Equal(t, 14*24*time.Hour-time.Hour, n.Stats().MaxLateness)
	})
}
