package poller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestNewReportsEveryMistakeTogether(t *testing.T) {
	_, err := poller.New(nil, nil, nil, poller.Config{
		Interval: -1, BatchSize: -1, DrainTimeout: -1, Retry: retry.Policy{MaxAttempts: -1, Jitter: 1},
	})
	require.EqualError(t, err, `poller: a deadline store is missing
poller: a locker is missing
poller: a dispatcher is missing
poller: interval must be positive, got -1ns
poller: batch size must be at least 1, got -1
poller: retry: max attempts must not be negative, got -1
poller: retry: want 0 < initial ≤ max, got 0s and 0s
poller: retry: want 0 ≤ jitter < 1, got 1
poller: drain timeout must be positive, got -1ns`)
}

func TestIntervalEqualToTheTTLIsRefused(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		locker := lease.New(db, "sweep", lease.Config{TTL: interval})
		_, err := poller.New(deadline.NewStore(db), locker, &node{}, poller.Config{Interval: interval})
		require.EqualError(t, err, "poller: interval 10s must be shorter than the lease's ttl 10s")
	})
}

func TestDeadlineFiresAtItsTimeAndNotBefore(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		put(t, db, time.Now().Add(25*time.Second), "a")
		defer n.run(t)()
		time.Sleep(25*time.Second - time.Microsecond)
		synctest.Wait()
		require.Empty(t, n.seen(&n.fired))
		time.Sleep(time.Microsecond)
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
		require.Empty(t, pending(t, db))
	})
}

func TestSignalWakesForSomethingEarlier(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		defer n.run(t)()
		synctest.Wait()
		for id, told := range map[string]time.Time{"told the time": time.Now().Add(time.Second), "told to look": {}} {
			due := time.Now().Add(time.Second)
			put(t, db, due, id)
			if !told.IsZero() {
				told = due
			}
			n.signal.Notify(told)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Contains(t, n.seen(&n.fired), id)
		}
	})
}

func TestUnsignalledDeadlineWaitsNoLongerThanTheInterval(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		defer n.run(t)()
		synctest.Wait()
		put(t, db, time.Now(), "a")
		time.Sleep(interval)
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

func TestPermanentErrorParksAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, handling(func(context.Context, deadline.Claimed) error { return retry.Permanent(errors.New("undecodable")) }))
		put(t, db, time.Now(), "a")
		require.NoError(t, n.Sweep(t.Context()))
		row := pending(t, db)[0]
		require.Equal(t, 1, row.Attempts)
		require.Equal(t, "undecodable", *row.LastError)
		require.WithinDuration(t, time.Now(), row.ParkedAt.Time, 0)
		require.EqualValues(t, 1, n.Stats().Parked)
		require.NoError(t, n.Sweep(t.Context()))
		require.Len(t, n.seen(&n.calls), 1)
	})
}

func TestUncountedErrorCostsNoAttemptAndNeverSpins(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, handling(func(context.Context, deadline.Claimed) error { return retry.Uncounted(errors.New("busy")) }))
		put(t, db, time.Now(), "a")
		stop := n.run(t)
		time.Sleep(time.Minute)
		stop()
		require.Zero(t, pending(t, db)[0].Attempts)
		require.Nil(t, pending(t, db)[0].LastError)
		calls := len(n.seen(&n.calls))
		require.GreaterOrEqual(t, calls, 50)
		require.LessOrEqual(t, calls, 80)
		require.EqualValues(t, calls, n.Stats().Left)
	})
}

func TestDispatcherThatHandlesNothingNeverSpins(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var calls atomic.Int32
		ignore := errors.New("ignored")
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { calls.Add(1); return ignore }))
		lazy, err := poller.New(n.store, n.locker, ignoring{n, ignore}, poller.Config{Interval: interval, Signal: n.signal, Logger: quiet})
		require.NoError(t, err)
		put(t, db, time.Now(), "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, lazy.Run(ctx))
		require.LessOrEqual(t, calls.Load(), int32(80))
	})
}

// ignoring turns an error of a node into success.
type ignoring struct {
	*node
	ignored error
}

func (i ignoring) Dispatch(ctx context.Context, d deadline.Due) error {
	if err := i.node.Dispatch(ctx, d); !errors.Is(err, i.ignored) {
		return err
	}
	return nil
}

func TestPanicOfAHandlerIsACountedFailureWithItsStack(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, handling(func(context.Context, deadline.Claimed) error { panic("no") }))
		put(t, db, time.Now(), "a")
		require.NoError(t, n.Sweep(t.Context()))
		row := pending(t, db)[0]
		require.Equal(t, 1, row.Attempts)
		require.Contains(t, *row.LastError, "poller: dispatch transfer-saga/a/timer: panic: no")
		require.Contains(t, *row.LastError, "poller_test.go")
		require.WithinDuration(t, time.Now().Add(time.Second), row.NextAt.Time, 0)
	})
}

func TestDeadlinesOfOneSagaFollowEachOtherInDueOrder(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var order []string
		kinds := []deadline.Kind{{Type: sagaType, Name: "c"}, {Type: sagaType, Name: "a"}, {Type: sagaType, Name: "b"}}
		d := &ordered{kinds: kinds, store: deadline.NewStore(db), db: db, order: &order}
		p, err := poller.New(d.store, lease.New(db, "sweep", lease.Config{}), d, poller.Config{})
		require.NoError(t, err)
		for i, kind := range kinds {
			putNamed(t, db, kind, time.Now().Add(time.Duration(i)*time.Millisecond), "x")
		}
		time.Sleep(time.Second)
		require.NoError(t, p.Sweep(t.Context()))
		require.Equal(t, []string{"c", "a", "b"}, order)
	})
}

// ordered takes longer for what comes first; its list needs no lock if nothing overlaps.
type ordered struct {
	kinds []deadline.Kind
	store *deadline.Store
	db    *schema.DB
	order *[]string
}

func (o *ordered) Kinds() []deadline.Kind { return o.kinds }

func (o *ordered) Dispatch(ctx context.Context, d deadline.Due) error {
	time.Sleep(time.Duration(3-len(*o.order)) * time.Second)
	*o.order = append(*o.order, d.Name)
	return o.db.Tx(ctx, func(ctx context.Context, tx *schema.Tx) error {
		_, _, err := o.store.Claim(ctx, tx, d)
		return err
	})
}

func TestLostLeaseStartsNothingNewAndLeavesRunningHandlersAlone(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		release := make(chan struct{})
		var interrupted atomic.Bool
		n := newNode(t, db, beforeClaim(func(ctx context.Context, _ deadline.Due) error {
			<-release
			interrupted.Store(ctx.Err() != nil)
			return nil
		}))
		put(t, db, time.Now(), ids("a", 25)...)
		defer n.run(t)()
		synctest.Wait()
		require.Equal(t, 20, n.Stats().InFlight) // two batches; the pass waits for room
		_, err := db.Exec(t.Context(), "UPDATE {deadline_lock} SET holder = 'usurper', term = term + 1, expires_at = {now+}", time.Hour)
		require.NoError(t, err)
		time.Sleep(ttl)
		require.False(t, n.Stats().Leading)
		close(release)
		time.Sleep(30 * time.Minute)
		require.Len(t, n.seen(&n.fired), 20)
		require.Len(t, pending(t, db), 5)
		require.False(t, interrupted.Load())
		time.Sleep(31 * time.Minute)
		require.Len(t, n.seen(&n.fired), 25)
	})
}

func TestStopWaitsForRunningHandlersWithinTheirBudget(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		begun := make(chan struct{}, 1)
		n := newNode(t, db, config(func(c *poller.Config) { c.DrainTimeout = 5 * time.Second }),
			beforeClaim(func(ctx context.Context, _ deadline.Due) error {
				begun <- struct{}{}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(4 * time.Second):
					return nil
				}
			}))
		put(t, db, time.Now(), "a")
		stop := n.run(t)
		<-begun
		stop()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

func TestHandlerBeyondItsBudgetIsInterruptedAndCostsNoAttempt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		begun := make(chan struct{}, 1)
		n := newNode(t, db, config(func(c *poller.Config) { c.DrainTimeout = 5 * time.Second }),
			beforeClaim(func(ctx context.Context, _ deadline.Due) error {
				begun <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			}))
		put(t, db, time.Now(), "a")
		stop := n.run(t)
		<-begun
		stopped := time.Now()
		stop()
		require.WithinDuration(t, stopped.Add(5*time.Second), time.Now(), 0)
		require.Zero(t, pending(t, db)[0].Attempts)
		require.Zero(t, n.Stats().InFlight)
	})
}

func TestStatsTellWhatHappened(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, handling(func(_ context.Context, c deadline.Claimed) error {
			if c.ID == "bad" {
				return errors.New("no")
			}
			return nil
		}))
		put(t, db, time.Now(), "bad", "good")
		time.Sleep(3 * time.Second)
		require.NoError(t, n.Sweep(t.Context()))
		s := n.Stats()
		require.WithinDuration(t, time.Now(), s.LastSweep, 0)
		s.LastSweep = time.Time{}
		require.Equal(t, poller.Stats{Sweeps: 1, Reads: 1, Selected: 2, Fired: 1, Failed: 1, Lateness: 3 * time.Second, MaxLateness: 3 * time.Second}, s)
	})
}
