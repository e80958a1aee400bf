package poller_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestP13FailureSkipsNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, handling(func(_ context.Context, c deadline.Claimed) error {
			if c.ID == "a00002" && c.Attempts == 0 {
				return errors.New("once")
			}
			return nil
		}))
		put(t, db, time.Now(), ids("a", 10)...)
		defer n.run(t)()
		synctest.Wait()
		require.Len(t, n.seen(&n.fired), 9)
		require.Equal(t, "a00002", pending(t, db)[0].ID)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, n.seen(&n.fired), 10)
	})
}

func TestP15ThreePollersFireEachDeadlineOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now(), ids("a", 500)...)
		nodes := []*node{newNode(t, db), newNode(t, db), newNode(t, db)}
		for _, n := range nodes {
			defer n.run(t)()
		}
		for range 10 { // the lease expires under its holder, whoever that is
			time.Sleep(time.Second)
			_, err := db.Exec(t.Context(), "UPDATE {deadline_lock} SET expires_at = {now}")
			require.NoError(t, err)
		}
		time.Sleep(ttl)
		synctest.Wait()
		fired := 0
		for _, n := range nodes {
			fired += len(n.seen(&n.fired))
		}
		require.Equal(t, 500, fired)
		require.Equal(t, 500, count(t, db, "{event}"))
		require.Empty(t, pending(t, db))
	})
}

func TestP16LoopCanBeStoppedAndStartedFiveTimes(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		for i, id := range ids("a", 5) {
			stop := n.run(t)
			put(t, db, time.Now().Add(time.Second), id)
			n.signal.Notify(time.Now().Add(time.Second))
			time.Sleep(time.Second)
			synctest.Wait()
			require.Len(t, n.seen(&n.fired), i+1)
			stop()
		}
	})
}

func TestP16SweepAfterAPanicInASweepRuns(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		p, err := poller.New(n.store, n.locker, &fragile{node: n}, poller.Config{Interval: interval, Signal: n.signal, Logger: quiet})
		require.NoError(t, err)
		put(t, db, time.Now(), "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, p.Run(ctx))
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

// fragile panics in the first sweep.
type fragile struct {
	*node
	asked atomic.Int32
}

func (f *fragile) Kinds() []deadline.Kind {
	if f.asked.Add(1) == 1 {
		panic("no")
	}
	return f.node.Kinds()
}

func TestP17SignalAfterASlowCommitFiresAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		defer n.run(t)()
		synctest.Wait()
		due := time.Now().Add(time.Millisecond)
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
			var b schema.Batch
			n.store.Put(&b, []deadline.New{{Key: deadline.Key{Type: sagaType, ID: "a", Name: "timer"}, Token: "t", PublicID: "p", Due: due}})
			_, err := tx.Run(ctx, &b)
			time.Sleep(2 * time.Second)
			return err
		}))
		n.signal.Notify(due)
		begun := time.Now()
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
		require.WithinDuration(t, begun, time.Now(), 0)
	})
}

func TestP18ClockThatStepsLeavesTheLoopAlive(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var asked atomic.Int64
		n := newNode(t, db, config(func(c *poller.Config) {
			c.Now = func() time.Time { // a step at every reading: also between computing a sleep and sleeping
				return time.Now().Add([]time.Duration{0, 8 * time.Hour, -8 * time.Hour}[asked.Add(1)%3])
			}
		}))
		defer n.run(t)()
		for i, id := range ids("a", 6) {
			put(t, db, time.Now().Add(-9*time.Hour), id)
			time.Sleep(interval)
			synctest.Wait()
			require.Len(t, n.seen(&n.fired), i+1)
		}
	})
}

func TestP18SteppedClockFiresWithinAnInterval(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var offset atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		n := newNode(t, db, config(func(c *poller.Config) { c.Now = now }))
		put(t, db, now().Add(time.Hour), "a")
		defer n.run(t)()
		synctest.Wait()
		offset.Store(int64(-8 * time.Hour))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Empty(t, n.seen(&n.fired))
		offset.Store(int64(8 * time.Hour))
		time.Sleep(interval)
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

// idle counts the statements of a minute in which nothing is due.
func idle(t *testing.T, db *schema.DB, tap *tap, nodes int) int {
	t.Helper()
	for range nodes {
		n := newNode(t, db)
		defer n.run(t)()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	tap.take("")
	time.Sleep(time.Minute)
	synctest.Wait()
	return len(tap.take(""))
}

func TestP19IdleNodesOnlyAskForTheLease(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		put(t, db, time.Now().Add(time.Hour), ids("a", 100)...)
		one, eight := idle(t, db, tap, 1), idle(t, db, tap, 8)
		perTry := 8 // of each idle node in a minute, at an interval of ten seconds less its jitter
		require.LessOrEqual(t, eight-one, 7*perTry)
		require.NotZero(t, one)
	})
}

func TestP84IdleCostIsBelowOneStatementPerSecondAndDoesNotGrowWithPending(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		empty := idle(t, db, tap, 1)
		put(t, db, time.Now().Add(time.Hour), ids("a", 1000)...)
		require.LessOrEqual(t, empty, 30)
		require.InDelta(t, empty, idle(t, db, tap, 1), 3)
	})
}

func TestP84WakeUpsAreOneReadEach(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		n := newNode(t, db)
		defer n.run(t)()
		synctest.Wait()
		tap.take("")
		for range 1000 {
			n.signal.Notify(time.Now().Add(time.Minute))
		}
		synctest.Wait()
		require.Empty(t, tap.take("next_at")) // later than the next look at the table anyway
		for range 1000 {
			n.signal.Notify(time.Time{})
		}
		synctest.Wait()
		reads := len(tap.take("next_at"))
		require.NotZero(t, reads)
		require.Less(t, reads, 200)
	})
}

func TestP24OverdueAtRestartFiresOnceAndByTheHandlerThatKnowsIt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now().Add(-time.Hour), "a")
		for range 3 {
			n := newNode(t, db)
			stop := n.run(t)
			time.Sleep(time.Minute)
			stop()
		}
		require.Equal(t, 1, count(t, db, "{event}"))
	})
}

func TestP26OneSweepDrainsABacklog(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, config(func(c *poller.Config) { c.BatchSize = 100 }))
		put(t, db, time.Now(), ids("a", 5000)...)
		begun := time.Now()
		require.NoError(t, n.Sweep(t.Context()))
		require.WithinDuration(t, begun, time.Now(), 0)
		require.EqualValues(t, 5000, n.Stats().Fired)
		require.EqualValues(t, 1, n.Stats().Sweeps)
	})
}

func TestP27OldestOfABacklogBeyondTheLimitGoFirst(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		selected, release := make(chan string, 100), make(chan struct{})
		n := newNode(t, db, beforeClaim(func(_ context.Context, d deadline.Due) error { selected <- d.ID; <-release; return nil }))
		for minute, id := range slices.Backward(ids("a", 60)) { // stored newest first
			put(t, db, time.Now().Add(time.Duration(minute-60)*time.Minute), id)
		}
		stop := n.run(t)
		synctest.Wait()
		var first []string
		for range 20 {
			first = append(first, <-selected)
		}
		require.ElementsMatch(t, ids("a", 20), first)
		close(release)
		synctest.Wait()
		stop()
		require.Len(t, n.seen(&n.fired), 60)
	})
}

func TestP28OneOldRowGoesBeforeManyNewOnes(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		var first atomic.Value
		n := newNode(t, db, config(func(c *poller.Config) { c.BatchSize = 1 }),
			beforeClaim(func(_ context.Context, d deadline.Due) error {
				first.CompareAndSwap(nil, d.ID)
				time.Sleep(time.Second)
				return nil
			}))
		put(t, db, time.Now().Add(-time.Minute), ids("new", 200)...)
		put(t, db, time.Now().Add(-time.Hour), "z old")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		require.ErrorIs(t, n.Sweep(ctx), context.DeadlineExceeded)
		require.Contains(t, n.seen(&n.fired), "z old")
	})
}

func TestP31HintsFireNothingEarly(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		due := time.Now().Add(200 * time.Millisecond)
		var early atomic.Int32
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error {
			if time.Now().Before(due) {
				early.Add(1)
			}
			return nil
		}))
		defer n.run(t)()
		put(t, db, due, ids("a", 300)...)
		for i := range 300 {
			n.signal.Notify([]time.Time{{}, due, time.Now()}[i%3])
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		require.Zero(t, early.Load())
		require.Len(t, n.seen(&n.fired), 300)
		require.Zero(t, n.Stats().MaxLateness)
	})
}

func TestP32RestartInASweepLosesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now(), ids("a", 200)...)
		restarts := 0
		for len(pending(t, db)) > 0 {
			n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { time.Sleep(time.Second); return nil }))
			stop := n.run(t)
			time.Sleep(1500 * time.Millisecond)
			stop()
			restarts++
		}
		require.Greater(t, restarts, 2)
		require.Equal(t, 200, count(t, db, "{event}"))
	})
}
