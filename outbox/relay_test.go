package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/retry"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestRelayReportsAllMistakesOfItsConfigTogether(t *testing.T) {
	_, err := outbox.NewRelay(nil, nil, outbox.Config{Interval: -1, BatchSize: -1, Workers: -1, DrainTimeout: -1,
		Retry: retry.Policy{MaxAttempts: -1, Initial: 2, Max: 1, Jitter: 1}})
	require.EqualError(t, err, `outbox: a relay needs a store and a locker
outbox: neither a router nor a sink: nothing could be delivered
outbox: interval must be positive, got -1ns
outbox: batch size must be positive, got -1
outbox: workers must be positive, got -1
outbox: drain timeout must be positive, got -1ns
outbox: retry: max attempts must not be negative, got -1
outbox: retry: want 0 < initial ≤ max, got 2ns and 1ns
outbox: retry: want 0 ≤ jitter < 1, got 1`)
}

func TestRelayDeliversAtOnceWhatIsSignalled(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.run(b.relay())
		time.Sleep(7 * time.Second)
		sent := time.Now()
		b.send(command("t1", "a1"), command("t1", "a2"))
		synctest.Wait()
		require.Equal(t, []string{"a1", "a2"}, b.of("t1"))
		require.Equal(t, sent, time.Now())
		require.Zero(t, b.backlog())
	})
}

func TestRelayFindsWithinTheIntervalWhatNobodySignalled(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.run(b.relay())
		time.Sleep(time.Second)
		require.NoError(t, b.put(command("t1", "a1")))
		synctest.Wait()
		require.Empty(t, b.delivered())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a1"}, b.of("t1"))
	})
}

func TestRelayFindsAtStartWhatWaits(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		require.NoError(t, b.put(command("t1", "a1")))
		time.Sleep(time.Hour)
		b.run(b.relay())
		synctest.Wait()
		require.Equal(t, []string{"a1"}, b.of("t1"))
	})
}

func TestFailingCommandBacksOffAndHoldsBackOnlyItsSaga(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		start := time.Now()
		var tried []time.Duration
		b.failing(func(_ context.Context, c outbox.Command) error {
			if c.ID == "a1" {
				tried = append(tried, time.Since(start))
				require.Equal(t, len(tried), c.Attempt)
				return errBroken
			}
			return nil
		})
		r := b.relay()
		b.run(r)
		b.send(command("t1", "a1"), command("t1", "a2"), command("t2", "b1"))
		synctest.Wait()
		require.Equal(t, []string{"t2:b1"}, b.delivered())

		b.send(command("t1", "a3"), command("t2", "b2"))
		time.Sleep(2999 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"t2:b1", "t2:b2"}, b.delivered())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, tried)
		require.Equal(t, []string{"t2:b1", "t2:b2", "t1:a2", "t1:a3"}, b.delivered())
		require.Len(t, b.parked(), 1)
		require.Equal(t, outbox.Stats{Delivered: 4, Failed: 3, Parked: 1, Leading: true}, r.Stats())
	})
}

func TestPermanentErrorParksAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, c outbox.Command) error {
			if c.ID == "a1" {
				return fmt.Errorf("wrapped: %w", retry.Permanent(errBroken))
			}
			return nil
		})
		b.run(b.relay())
		b.send(command("t1", "a1"), command("t1", "a2"))
		synctest.Wait()
		require.Equal(t, []string{"a2"}, b.of("t1"))
		require.Equal(t, []string{"a1", "a2"}, b.attempts())
		require.Equal(t, "wrapped: the bank is closed", b.parked()[0].LastError)
	})
}

func TestUncountedErrorCostsNoAttemptAndDoesNotSpin(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, c outbox.Command) error { return retry.Uncounted(errBroken) })
		b.run(b.relay())
		b.send(command("t1", "a1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		tried := len(b.attempts())
		require.Greater(t, tried, 30)
		require.Less(t, tried, 90)

		b.failing(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a1"}, b.of("t1"))
		require.Equal(t, 1, b.seen[len(b.seen)-1].Attempt)
	})
}

func TestPanicIsAFailureWithItsStack(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(context.Context, outbox.Command) error { panic("no money") })
		b.run(b.relay())
		b.send(command("t1", "a1"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, b.attempts(), 3)
		text := b.parked()[0].LastError
		require.True(t, strings.HasPrefix(text, "outbox: deliver debit a1: panic: no money\n"), text)
		require.Contains(t, text, "relay_test.go")
	})
}

func TestHandlerThatEndsItsGoroutineDoesNotStopTheRelay(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, c outbox.Command) error {
			if c.SagaID == "t1" {
				runtime.Goexit()
			}
			return nil
		})
		stop := b.run(b.relay())
		b.send(command("t1", "a1"))
		time.Sleep(10 * time.Second)
		b.send(command("t2", "b1"))
		time.Sleep(time.Second)
		require.Equal(t, []string{"t2:b1"}, b.delivered())
		require.Less(t, len(b.attempts()), 30)
		stop()
		require.EqualValues(t, 1, b.backlog().Pending)
	})
}

func TestSlowSagaDoesNotBlockOthers(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, c outbox.Command) error {
			if c.SagaID == "slow" {
				time.Sleep(time.Hour)
			}
			return nil
		})
		b.run(b.relay())
		b.send(command("slow", "s1"), command("slow", "s2"))
		time.Sleep(time.Second)
		for i := range 5 {
			sent := time.Now()
			b.send(command("fast", fmt.Sprintf("f%d", i)))
			synctest.Wait()
			require.Len(t, b.of("fast"), i+1)
			require.Equal(t, sent, time.Now())
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"s1", "s2"}, b.of("slow"))
	})
}

func TestCommandSentWhileItsSagaIsDeliveredFollowsAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(context.Context, outbox.Command) error {
			time.Sleep(time.Second)
			return nil
		})
		b.run(b.relay())
		b.send(command("t1", "a1"))
		time.Sleep(500 * time.Millisecond)
		b.send(command("t1", "a2"))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"a1", "a2"}, b.of("t1"))
	})
}

func TestWorkersLimitTheSagasDeliveredAtOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		var mu sync.Mutex
		now, most := 0, 0
		b.failing(func(context.Context, outbox.Command) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})
		for i := range 10 {
			require.NoError(t, b.put(command(fmt.Sprint("t", i), fmt.Sprint("c", i))))
		}
		start := time.Now()
		require.NoError(t, b.relay(func(c *outbox.Config) { c.Workers, c.BatchSize = 4, 3 }).Flush(t.Context()))
		require.Len(t, b.delivered(), 10)
		require.Equal(t, 4, most)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestLongBacklogOfOneSagaLeavesRoomForOthers(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(context.Context, outbox.Command) error {
			time.Sleep(time.Second)
			return nil
		})
		for i := range 50 {
			require.NoError(t, b.put(command("long", fmt.Sprint("l", i))))
		}
		b.send(command("short", "s"))
		b.run(b.relay(func(c *outbox.Config) { c.Workers, c.BatchSize = 1, 5 }))
		time.Sleep(7 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"s"}, b.of("short"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, b.of("long"), 50)
	})
}

func TestInterceptorsWrapEachDelivery(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		var mu sync.Mutex
		var trace []string
		note := func(name string) outbox.Interceptor {
			return func(ctx context.Context, c outbox.Command, next func(context.Context, outbox.Command) error) error {
				mu.Lock()
				trace = append(trace, name)
				mu.Unlock()
				c.Metadata = map[string]string{"by": name}
				return next(ctx, c)
			}
		}
		swallow := func(ctx context.Context, c outbox.Command, next func(context.Context, outbox.Command) error) error {
			if c.ID == "a2" {
				return nil
			}
			return next(ctx, c)
		}
		var delivery outbox.Delivery
		b.failing(func(ctx context.Context, _ outbox.Command) error {
			delivery = outbox.DeliveryFrom(ctx)
			return nil
		})
		b.send(command("t1", "a1"), command("t1", "a2"))
		r := b.relay(func(c *outbox.Config) { c.Interceptors = []outbox.Interceptor{note("outer"), note("inner"), swallow} })
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, []string{"outer", "inner", "outer", "inner"}, trace)
		require.Equal(t, []string{"a1"}, b.of("t1"))
		require.Equal(t, map[string]string{"by": "inner"}, b.seen[0].Metadata)
		require.Equal(t, outbox.Delivery{ID: "a1", SagaType: "transfer", SagaID: "t1", Metadata: map[string]string{"by": "inner"}, Attempt: 1}, delivery)
		require.Zero(t, b.backlog())
	})
}

func TestSinkGetsWhatTheRouterDoesNotKnow(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		var got []debit
		router, err := outbox.NewRouter(stored, func(_ context.Context, c debit) error {
			got = append(got, c)
			return nil
		})
		require.NoError(t, err)
		mail := command("t1", "a2")
		mail.Type = "mail"
		b.send(command("t1", "a1"), mail)
		require.NoError(t, b.relay(func(c *outbox.Config) { c.Router = router }).Flush(t.Context()))
		require.Equal(t, []debit{{1}}, got)
		require.Equal(t, []string{"a2"}, b.of("t1"))
	})
}

func TestUnknownCommandHoldsBackItsSagaAndIsReportedOnce(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		lines := &logLines{}
		router, err := outbox.NewRouter(stored, func(ctx context.Context, c debit) error {
			return b.Deliver(ctx, outbox.Command{ID: outbox.DeliveryFrom(ctx).ID, SagaID: outbox.DeliveryFrom(ctx).SagaID})
		})
		require.NoError(t, err)
		only := func(c *outbox.Config) { c.Router, c.Sink, c.Logger = router, nil, slog.New(lines) }
		mail := command("t1", "a2")
		mail.Type = "mail"
		r := b.relay(only)
		stop := b.run(r)
		b.send(command("t1", "a1"), mail, command("t1", "a3"), command("t2", "b1"))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"a1"}, b.of("t1"))
		require.Equal(t, []string{"b1"}, b.of("t2"))
		require.Equal(t, []outbox.Kind{{SagaType: "transfer", Type: "mail"}}, r.Stats().Foreign)
		require.Equal(t, []string{"WARN outbox: overdue commands that this node cannot deliver"}, lines.all())
		stop()

		require.NoError(t, b.relay().Flush(t.Context())) // a node with a sink
		require.Equal(t, []string{"a1", "a2", "a3"}, b.of("t1"))
		b.run(r)
		synctest.Wait()
		require.Empty(t, r.Stats().Foreign)
		require.Len(t, lines.all(), 2)
	})
}

func TestRelayLeavesCommandsOfForeignSagaTypes(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		other := command("t1", "o1")
		other.SagaType = "loan"
		b.run(b.relay(func(c *outbox.Config) { c.SagaTypes = []string{"transfer", "old-transfer"} }))
		b.send(other, command("t1", "a1"))
		time.Sleep(time.Hour)
		require.Equal(t, []string{"t1:a1"}, b.delivered())
		require.EqualValues(t, 1, b.backlog().Pending)
	})
}

func TestOnlyOneRelayDeliversAtATime(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		first, second := b.relay(), b.relay()
		stop := b.run(first)
		synctest.Wait()
		b.run(second)
		synctest.Wait()
		require.True(t, first.Stats().Leading)
		require.False(t, second.Stats().Leading)
		require.ErrorIs(t, second.Flush(t.Context()), lease.ErrHeld)
		b.send(command("t1", "a1"))
		synctest.Wait()
		require.EqualValues(t, 1, first.Stats().Delivered)

		stop()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.True(t, second.Stats().Leading)
		b.send(command("t1", "a2"))
		synctest.Wait()
		require.EqualValues(t, 1, second.Stats().Delivered)
	})
}

func TestLostLeaseStartsNothingNewButLetsDeliveriesEnd(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		var ended error
		b.failing(func(ctx context.Context, c outbox.Command) error {
			if c.ID == "a1" {
				time.Sleep(10 * time.Minute)
				ended = ctx.Err()
			}
			return nil
		})
		r := b.relay()
		b.run(r)
		b.send(command("t1", "a1"), command("t1", "a2"))
		time.Sleep(time.Second)
		_, err := db.Exec(t.Context(), "UPDATE {deadline_lock} SET holder = 'thief', term = term + 1, expires_at = ?", time.Now().Add(time.Hour))
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		b.send(command("t2", "b1"))
		synctest.Wait()
		require.False(t, r.Stats().Leading)
		require.Empty(t, b.delivered())
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		require.NoError(t, ended)
		require.Equal(t, []string{"t1:a1"}, b.delivered())
		require.EqualValues(t, 2, b.backlog().Pending)

		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"a1", "a2"}, b.of("t1"))
		require.Equal(t, []string{"b1"}, b.of("t2"))
	})
}

func TestFlushWorksUnderTheLeaseOfRun(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		r := b.relay()
		b.run(r)
		time.Sleep(time.Second)
		require.NoError(t, b.put(command("t1", "a1")))
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, []string{"a1"}, b.of("t1"))
	})
}

func TestFlushDeliversWhatDeliveriesSend(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, c outbox.Command) error {
			if n := len(c.ID); n < 5 {
				return b.put(command("t1", c.ID+"x"))
			}
			return nil
		})
		require.NoError(t, b.put(command("t1", "x")))
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, []string{"x", "xx", "xxx", "xxxx", "xxxxx"}, b.of("t1"))
	})
}

func TestFlushEndsWithWhatCannotBeDeliveredNow(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(_ context.Context, c outbox.Command) error {
			switch c.SagaID {
			case "fails":
				return errBroken
			case "uncounted":
				return retry.Uncounted(errBroken)
			}
			return nil
		})
		require.NoError(t, b.put(command("fails", "f"), command("uncounted", "u"), command("fine", "g")))
		start := time.Now()
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, start, time.Now())
		require.Equal(t, []string{"fine:g"}, b.delivered())
	})
}

func TestFlushEndsWithItsContext(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(ctx context.Context, c outbox.Command) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, b.put(command("t1", "a1")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, b.relay().Flush(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Minute+10*time.Second, time.Since(start))
		require.EqualValues(t, 1, b.backlog().Pending)
	})
}

func TestClockThatStepsForwardIsNoticedWithinTheInterval(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		var mu sync.Mutex
		var step time.Duration
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(step)
		}
		b.failing(failOn("a1"))
		b.run(b.relay(func(c *outbox.Config) { c.Now = now }))
		b.send(command("t1", "a1"))
		synctest.Wait()
		mu.Lock()
		step = time.Hour
		mu.Unlock()
		b.failing(nil)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a1"}, b.of("t1"))
	})
}
