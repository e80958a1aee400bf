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
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestCase0105OverdueAtOnceOnTheNextSweep(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db)
		put(t, db, time.Now().Add(-time.Hour), "a")
		require.NoError(t, n.Sweep(t.Context()))
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

func TestCase0115HandlerThatFailsOnceIsCalledTwiceWithOneEffect(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		attempts := []int{}
		n := newNode(t, db, handling(func(_ context.Context, c deadline.Claimed) error {
			if attempts = append(attempts, c.Attempts); len(attempts) == 1 {
				return errors.New("once")
			}
			return nil
		}))
		put(t, db, time.Now(), "a")
		require.NoError(t, n.Sweep(t.Context()))
		require.NoError(t, n.Sweep(t.Context())) // the backoff is not over
		require.Equal(t, []int{0}, attempts)
		time.Sleep(time.Second)
		require.NoError(t, n.Sweep(t.Context()))
		require.Equal(t, []int{0, 1}, attempts)
		require.Equal(t, 1, count(t, db, "{event}"))
		require.Empty(t, pending(t, db))
	})
}

func TestCase0116StopBeforeCommitFiresAgainAndAfterCommitNot(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		put(t, db, time.Now(), "a")
		begun := make(chan struct{})
		first := newNode(t, db, handling(func(context.Context, deadline.Claimed) error { close(begun); time.Sleep(time.Minute); return nil }))
		stop := first.run(t)
		<-begun
		stop()
		require.Empty(t, first.seen(&first.fired))
		require.Zero(t, pending(t, db)[0].Attempts)

		second, third := newNode(t, db), newNode(t, db)
		require.NoError(t, second.Sweep(t.Context()))
		require.Equal(t, []string{"a"}, second.seen(&second.fired))
		require.NoError(t, third.Sweep(t.Context()))
		require.Empty(t, third.seen(&third.calls))
		require.Equal(t, 1, count(t, db, "{event}"))
	})
}

func TestCase0117DueDuringDowntimeFiresOnTheFirstSweep(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		newNode(t, db).run(t)()
		put(t, db, time.Now().Add(time.Minute), "a")
		time.Sleep(time.Hour)
		n := newNode(t, db)
		begun := time.Now()
		stop := n.run(t)
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
		require.WithinDuration(t, begun, time.Now(), 0)
		stop()
	})
}

func TestCase0118SweepReadsFullBatches(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		release, selected := make(chan struct{}), make(chan string, 250)
		n := newNode(t, db, config(func(c *poller.Config) { c.BatchSize = 100 }),
			beforeClaim(func(_ context.Context, d deadline.Due) error { selected <- d.ID; <-release; return nil }))
		put(t, db, time.Now().Add(-1*time.Second), ids("c", 100)...)
		put(t, db, time.Now().Add(-2*time.Second), ids("b", 50)...)
		put(t, db, time.Now().Add(-3*time.Second), ids("d", 100)...)
		stop := n.run(t)
		synctest.Wait()
		require.Equal(t, 200, n.Stats().InFlight) // until there is room
		var oldest []string
		for range 200 {
			oldest = append(oldest, <-selected)
		}
		require.ElementsMatch(t, append(append(ids("d", 100), ids("b", 50)...), ids("c", 50)...), oldest)
		close(release)
		synctest.Wait()
		s := n.Stats()
		require.EqualValues(t, []int64{1, 3, 250, 250}, []int64{s.Sweeps, s.Reads, s.Selected, s.Fired})
		stop()
	})
}

func TestCase0118ReadsAre100And100And50InDueOrder(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		n := newNode(t, db, config(func(c *poller.Config) { c.BatchSize = 100 }))
		put(t, db, time.Now(), ids("a", 250)...)
		tap.take("")
		require.NoError(t, n.Sweep(t.Context()))
		reads := tap.take("ORDER BY next_at, saga_type, saga_id, name LIMIT")
		require.Len(t, reads, 3)
		for i, after := range []string{"", "a00099", "a00199"} {
			require.Contains(t, reads[i].args, any(after))
			require.Contains(t, reads[i].args, any(int64(100)))
		}
		require.EqualValues(t, 250, n.Stats().Selected)
	})
}

func TestCase0119FailingBatchDoesNotKeepANewerRowFromFiring(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, handling(func(_ context.Context, c deadline.Claimed) error {
			if c.ID != "good" {
				return errors.New("always")
			}
			return nil
		}))
		put(t, db, time.Now().Add(-time.Hour), ids("bad", 10)...)
		put(t, db, time.Now(), "good")
		require.NoError(t, n.Sweep(t.Context()))
		require.Equal(t, []string{"good"}, n.seen(&n.fired))
		stop := n.run(t)
		time.Sleep(time.Minute)
		stop()
		for _, row := range pending(t, db) {
			require.Equal(t, 3, row.Attempts)
			require.False(t, row.ParkedAt.IsZero())
			require.Equal(t, "always", *row.LastError)
		}
		require.Len(t, pending(t, db), 10)
		require.EqualValues(t, 10, n.Stats().Parked)
	})
}

func TestCase0120OnlyTheHolderSelects(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		first, second := newNode(t, db), newNode(t, db)
		stopFirst := first.run(t)
		synctest.Wait()
		stopSecond := second.run(t)
		for i := range 10 {
			put(t, db, time.Now(), ids("a", 10)[i])
			time.Sleep(interval)
		}
		synctest.Wait()
		require.Len(t, first.seen(&first.fired), 10)
		require.Zero(t, second.Stats().Reads)
		stopFirst()
		put(t, db, time.Now(), "b")
		time.Sleep(interval)
		synctest.Wait()
		require.Equal(t, []string{"b"}, second.seen(&second.fired))
		stopSecond()
	})
}

func TestCase0120DeadHolderIsSucceededAfterExpiryAndNotEarlier(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		_, err := db.Exec(t.Context(), "INSERT INTO {deadline_lock} (name, holder, term, expires_at) VALUES ('sweep', 'dead', 1, {now+})", ttl)
		require.NoError(t, err)
		put(t, db, time.Now(), "a")
		n := newNode(t, db)
		defer n.run(t)()
		time.Sleep(ttl - time.Millisecond)
		synctest.Wait()
		require.Empty(t, n.seen(&n.calls))
		time.Sleep(interval)
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

func TestCase0121SlowHandlersRowIsNotQueuedAgain(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error { time.Sleep(5*interval + time.Second); return nil }))
		put(t, db, time.Now(), "a")
		stop := n.run(t)
		time.Sleep(5 * interval)
		synctest.Wait()
		s := n.Stats()
		require.Equal(t, []int64{1, 1}, []int64{s.Selected, int64(s.InFlight)})
		require.Greater(t, s.Sweeps, int64(4))
		stop()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}
