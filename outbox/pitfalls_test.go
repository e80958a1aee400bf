package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
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

func TestP44LeaseIsKeptUntilTheLastDeliveryEnded(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(context.Context, outbox.Command) error {
			time.Sleep(30 * time.Minute)
			return nil
		})
		stop := b.run(b.relay(func(c *outbox.Config) { c.DrainTimeout = time.Hour }))
		b.send(command("t1", "a1"))
		time.Sleep(time.Second)
		var stopped sync.WaitGroup
		stopped.Go(stop)
		time.Sleep(29 * time.Minute)
		require.ErrorIs(t, b.relay().Flush(t.Context()), lease.ErrHeld)
		stopped.Wait()
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, []string{"a1"}, b.attempts())
	})
}

func TestP50OneUndecodableRowDoesNotStopOthers(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		router := b.router(stored)
		for i := range 50 {
			c := command(fmt.Sprintf("t%02d", i), fmt.Sprintf("c%02d", i))
			if i%10 == 3 {
				c.Payload = `{"Amount":"not a number"}`
			}
			b.send(c)
		}
		_, err := db.Exec(t.Context(), "UPDATE {command} SET metadata = '{broken' WHERE command_id = 'c05'")
		require.NoError(t, err)
		b.run(b.relay(func(c *outbox.Config) { c.Router, c.Sink, c.BatchSize, c.Workers = router, nil, 2, 2 }))
		synctest.Wait()
		require.Len(t, b.delivered(), 44)
		var parked []string
		for _, p := range b.parked() {
			parked = append(parked, p.ID)
		}
		require.Equal(t, []string{"c03", "c05", "c13", "c23", "c33", "c43"}, parked)
		require.Equal(t, `{"Amount":"not a number"}`, string(b.parked()[0].Payload))
		require.Contains(t, b.parked()[1].LastError, "outbox: metadata of command c05: ")
	})
}

func TestP50PagesPassOverWhatHasToWait(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(failOn("poison"))
		b.run(b.relay(func(c *outbox.Config) {
			c.BatchSize, c.Retry = 10, retry.Policy{MaxAttempts: 2, Initial: time.Hour, Max: time.Hour}
		}))
		b.send(command("bad", "poison"))
		synctest.Wait()
		var behind []outbox.New
		for i := range 95 {
			behind = append(behind, command("bad", fmt.Sprint("behind", i)))
		}
		b.send(behind...)
		synctest.Wait()
		b.send(command("good", "g1"), command("better", "g2"))
		synctest.Wait()
		require.Equal(t, []string{"g1"}, b.of("good"))
		require.Equal(t, []string{"g2"}, b.of("better"))
		require.Empty(t, b.of("bad"))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, b.of("bad"), 95)
	})
}

// router makes a router whose only handler tells the bench.
func (b *bench) router(names types) *outbox.Router {
	b.t.Helper()
	r, err := outbox.NewRouter(names, func(ctx context.Context, _ debit) error {
		d := outbox.DeliveryFrom(ctx)
		return b.Deliver(ctx, outbox.Command{ID: d.ID, SagaType: d.SagaType, SagaID: d.SagaID, Metadata: d.Metadata, Attempt: d.Attempt})
	})
	require.NoError(b.t, err)
	return r
}

func TestP52CommandWithALowerNumberThatCommitsLaterIsDelivered(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		r := b.relay()
		if db.Dialect() == "sqlite" { // one writer: the lower number is freed by a command that went
			b.send(command("gone", "g1"), command("t2", "later"))
			require.NoError(t, r.Flush(t.Context()))
			_, err := db.Exec(t.Context(), `INSERT INTO {command} (seq, command_id, saga_type, saga_id, type, payload, created_at, next_at)
				VALUES (1, 'earlier', 'transfer', 't1', 'debit', '0', ?, ?)`, time.Now(), time.Now())
			require.NoError(t, err)
		} else {
			err := db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
				var batch schema.Batch
				b.store.Put(&batch, []outbox.New{command("t1", "earlier")})
				if _, err := tx.Run(ctx, &batch); err != nil {
					return err
				}
				b.send(command("t2", "later"))
				return r.Flush(ctx)
			})
			require.NoError(t, err)
		}
		require.Equal(t, []string{"later"}, b.of("t2"))
		require.Empty(t, b.of("t1"))
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, []string{"earlier"}, b.of("t1"))
	})
}

func TestP53OnePoisonDoesNotBlockOthers(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(failOn("poison"))
		commands := []outbox.New{command("bad", "poison")}
		for i := range 1000 {
			commands = append(commands, command(fmt.Sprint("t", i), fmt.Sprint("c", i)))
		}
		sent := time.Now()
		r := b.relay(func(c *outbox.Config) { c.Retry.MaxAttempts = 0 })
		b.run(r)
		b.send(commands...)
		synctest.Wait()
		require.Len(t, b.delivered(), 1000)
		require.Equal(t, sent, time.Now())

		before := r.Reads()
		time.Sleep(time.Hour)
		synctest.Wait()
		tried := len(b.attempts()) - 1000
		require.Greater(t, tried, 60)
		require.Less(t, tried, 70) // 1s doubled up to a minute
		require.Less(t, r.Reads()-before, int64(1000))
	})
}

func TestP54TroubleWithTheTableIsOneLineAtEachEnd(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		lines := &logLines{}
		b.failing(func(context.Context, outbox.Command) error {
			time.Sleep(time.Second)
			return nil
		})
		b.run(b.relay(func(c *outbox.Config) { c.Logger = slog.New(lines) }))
		b.send(command("t1", "a1"))
		time.Sleep(500 * time.Millisecond)
		rename := func(from, to string) {
			_, err := db.DB.Exec(fmt.Sprintf("ALTER TABLE %s RENAME TO %s", from, to))
			require.NoError(t, err)
		}
		rename("saga_command", "elsewhere")
		time.Sleep(30 * time.Second)
		rename("elsewhere", "saga_command")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []string{
			"WARN outbox trouble", "INFO outbox trouble over", // recording deliveries
			"WARN outbox trouble", "INFO outbox trouble over", // finding commands
		}, lines.all())
		require.Equal(t, []string{"a1"}, b.attempts()) // recorded late, not delivered again
		require.Zero(t, b.backlog())
	})
}

func TestP54AFailingSinkIsNotALineForEachCommand(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		lines := &logLines{}
		b.failing(func(context.Context, outbox.Command) error { return errBroken })
		b.run(b.relay(func(c *outbox.Config) { c.Logger, c.Retry = slog.New(lines), retry.Default }))
		for i := range 60 {
			require.NoError(t, b.put(command(fmt.Sprint("t", i), fmt.Sprint("c", i))))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Greater(t, len(b.attempts()), 200)
		require.LessOrEqual(t, len(lines.all()), 4)
	})
}

func TestP55OrderOfEachSagaHoldsThroughFailuresAndRestarts(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		const sagas, each = 12, 15
		dice := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		running := map[string]bool{}
		b.failing(func(_ context.Context, c outbox.Command) error {
			mu.Lock()
			overlaps := running[c.SagaID]
			running[c.SagaID] = true
			fails, lasts := dice.IntN(4) == 0, time.Duration(dice.IntN(300))*time.Millisecond
			mu.Unlock()
			time.Sleep(lasts)
			mu.Lock()
			defer mu.Unlock()
			delete(running, c.SagaID)
			switch {
			case overlaps:
				return retry.Permanent(errors.New("two commands of one saga at once"))
			case fails:
				return errBroken
			}
			return nil
		})
		var all []outbox.New
		for i := range sagas * each {
			all = append(all, command(fmt.Sprint("t", i%sagas), fmt.Sprintf("%d-%02d", i%sagas, i/sagas)))
		}
		for len(all) > 0 {
			n := min(len(all), 1+dice.IntN(20))
			require.NoError(t, b.put(all[:n]...))
			all = all[n:]
		}
		r := b.relay(func(c *outbox.Config) { c.Workers, c.BatchSize, c.Retry.MaxAttempts = 5, 4, 0 })
		for range 20 {
			stop := b.run(r)
			time.Sleep(time.Second)
			stop()
		}
		b.run(r)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, b.backlog())
		for s := range sagas {
			var want []string
			for i := range each {
				want = append(want, fmt.Sprintf("%d-%02d", s, i))
			}
			require.Equal(t, want, b.of(fmt.Sprint("t", s)))
		}
	})
}

func TestP55CommandIsRemovedOnlyAfterItsDelivery(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(context.Context, outbox.Command) error {
			require.EqualValues(t, 1, b.backlog().Pending)
			_, err := db.DB.Exec("ALTER TABLE saga_command RENAME TO elsewhere") // as good as a crash right here
			return err
		})
		stop := b.run(b.relay())
		b.send(command("t1", "a1"))
		time.Sleep(time.Second)
		stop()
		_, err := db.DB.Exec("ALTER TABLE elsewhere RENAME TO saga_command")
		require.NoError(t, err)
		require.EqualValues(t, 1, b.backlog().Pending)

		b.failing(nil)
		require.NoError(t, b.relay().Flush(t.Context()))
		require.Equal(t, []string{"a1", "a1"}, b.of("t1"))
		require.Equal(t, []int{1, 1}, []int{b.seen[0].Attempt, b.seen[1].Attempt})
	})
}

func TestP55AgeOfTheOldestIsReported(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(failOn("a1"))
		b.run(b.relay(func(c *outbox.Config) { c.Retry.MaxAttempts = 0 }))
		b.send(command("t1", "a1"))
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, time.Since(b.backlog().Oldest).Round(time.Millisecond))
	})
}

func TestP60NullAndBrokenColumnsSpoilNoList(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		insert := func(id, metadata, lastError, parked string) {
			_, err := db.Exec(t.Context(), `INSERT INTO {command} (command_id, saga_type, saga_id, type, payload, created_at, next_at, metadata, last_error, parked_at)
				VALUES (?, 'transfer', ?, 'debit', '0', ?, ?, `+metadata+`, `+lastError+`, `+parked+`)`, id, id, time.Now(), time.Now())
			require.NoError(t, err)
		}
		insert("nulls", "NULL", "NULL", "NULL")
		insert("null-metadata", "'null'", "''", "NULL")
		insert("parked-nulls", "NULL", "NULL", "{now}")
		insert("parked-broken", "'[1,2'", "'why'", "{now}")
		insert("parked-wrong", `'"wrong"'`, "NULL", "{now}")
		insert("broken", "'[]'", "NULL", "NULL")
		require.NoError(t, b.relay().Flush(t.Context()))
		require.ElementsMatch(t, []string{"nulls:nulls", "null-metadata:null-metadata"}, b.delivered())

		var listed []string
		for _, p := range b.parked() {
			require.Nil(t, p.Metadata)
			require.Equal(t, "0", string(p.Payload))
			listed = append(listed, p.ID)
		}
		require.Equal(t, []string{"parked-nulls", "parked-broken", "parked-wrong", "broken"}, listed)
	})
}

func TestP61CommandsOfAnEndedSagaSurviveFailingDeliveries(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		err := db.Tx(t.Context(), func(ctx context.Context, tx *schema.Tx) error {
			var batch schema.Batch
			now := time.Now()
			batch.Add(`INSERT INTO {instance} (saga_type, saga_id, state, version, status, started_at, updated_at, ended_at)
				VALUES ('transfer', 't1', '0', 1, 'ended', ?, ?, ?)`, now, now, now)
			b.store.Put(&batch, []outbox.New{command("t1", "reversal")})
			_, err := tx.Run(ctx, &batch)
			return err
		})
		require.NoError(t, err)
		b.failing(failOn("reversal"))
		stop := b.run(b.relay())
		time.Sleep(1500 * time.Millisecond)
		stop()
		_, err = db.Exec(t.Context(), "DELETE FROM {instance}") // its tombstone pruned
		require.NoError(t, err)
		b.failing(nil)
		b.run(b.relay())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"reversal"}, b.of("t1"))
		require.Equal(t, 3, b.seen[2].Attempt)
	})
}

func TestP63RetryOfRunningWorkChangesNothing(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(context.Context, outbox.Command) error {
			time.Sleep(time.Hour)
			return nil
		})
		r := b.relay()
		b.run(r)
		b.send(command("t1", "a1"))
		time.Sleep(time.Minute)
		for range 2 {
			retried, err := b.store.Retry(t.Context(), 1)
			require.NoError(t, err)
			require.False(t, retried)
			require.NoError(t, r.Flush(t.Context()))
			b.signal.Notify()
			synctest.Wait()
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"a1"}, b.attempts())
		require.Zero(t, b.backlog())
	})
}

func TestP63BackoffCountsFromTheEndOfTheLastAttempt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		start := time.Now()
		var began []time.Duration
		b.failing(func(context.Context, outbox.Command) error {
			began = append(began, time.Since(start))
			time.Sleep(time.Hour)
			return errBroken
		})
		b.run(b.relay())
		b.send(command("t1", "a1"))
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Hour + time.Second, 2*time.Hour + 3*time.Second}, began)
	})
}

func TestP64RelayGoesOnAfterTheDatabaseWasGone(t *testing.T) {
	p, address := newProxy(t, schematest.URL(t, "postgres"))
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, schematest.Open(t, address, schema.WithProcessClock()))
		lines := &logLines{}
		r := b.relay(func(c *outbox.Config) { c.Logger = slog.New(lines) })
		b.run(r)
		for outage := range 3 {
			b.send(command("t1", fmt.Sprint("before", outage)))
			synctest.Wait()
			p.setCut(true)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			require.False(t, r.Stats().Leading)
			p.setCut(false)
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			require.True(t, r.Stats().Leading)
			b.send(command("t1", fmt.Sprint("after", outage)))
			synctest.Wait()
		}
		require.Equal(t, []string{"before0", "after0", "before1", "after1", "before2", "after2"}, b.of("t1"))
		require.LessOrEqual(t, len(lines.all()), 6)
	})
}

func TestP84AnIdleRelayAsksLittle(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(failOn("a1"))
		require.NoError(t, b.put(command("t1", "a1")))
		idle, leading := b.relay(), b.relay(func(c *outbox.Config) { c.Retry = retry.Policy{Initial: 24 * time.Hour, Max: 24 * time.Hour} })
		b.run(leading)
		synctest.Wait()
		b.run(idle)
		synctest.Wait()
		before := leading.Reads()
		time.Sleep(time.Hour)
		require.Zero(t, idle.Reads())
		require.Less(t, leading.Reads()-before, int64(250)) // two each 30s
	})
}

func TestP85StopWaitsForDeliveriesAndRecordsThem(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(ctx context.Context, c outbox.Command) error {
			time.Sleep(9 * time.Second)
			if c.ID == "b1" {
				return errBroken
			}
			return ctx.Err()
		})
		r := b.relay()
		stop := b.run(r)
		b.send(command("t1", "a1"), command("t1", "a2"), command("t2", "b1"))
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []string{"a1"}, b.of("t1"))
		require.Equal(t, outbox.Stats{Delivered: 1, Failed: 1}, r.Stats())
		require.EqualValues(t, 2, b.backlog().Pending)

		b.failing(nil)
		b.run(r)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a1", "a2"}, b.of("t1"))
		require.Equal(t, []string{"b1"}, b.of("t2"))
	})
}

func TestP85DeliveryInterruptedByTheStopCostsNoAttempt(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		b.failing(func(ctx context.Context, c outbox.Command) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r := b.relay()
		stop := b.run(r)
		b.send(command("t1", "a1"))
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Zero(t, r.Stats().Failed)

		b.failing(nil)
		require.NoError(t, r.Flush(t.Context()))
		require.Equal(t, []string{"a1"}, b.of("t1"))
		require.Equal(t, 1, b.seen[1].Attempt)
	})
}

func TestP85StopInEachPhaseLosesAndDoublesNothing(t *testing.T) {
	for phase := range 12 {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			schematest.Each(t, func(t *testing.T, db *schema.DB) {
				b := newBench(t, db)
				for i := range 4 {
					require.NoError(t, b.put(command(fmt.Sprint("t", i%2), fmt.Sprint("c", i))))
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var calls atomic.Int64
				step := func() {
					if calls.Add(1) > int64(phase) {
						cancel()
					}
				}
				r := b.relay(func(c *outbox.Config) {
					c.Workers = 1 // so that steps come one by one
					c.Now = func() time.Time { step(); return time.Now() }
				})
				b.failing(func(context.Context, outbox.Command) error { step(); return nil })
				if phase == 0 {
					cancel()
				}
				require.NoError(t, r.Run(ctx))
				require.NoError(t, b.relay().Flush(t.Context()))
				require.Len(t, b.attempts(), 4)
				require.Equal(t, []string{"c0", "c2"}, b.of("t0"))
				require.Equal(t, []string{"c1", "c3"}, b.of("t1"))
			})
		})
	}
}

func TestP86RenamedTypeIsDeliveredByItsAlias(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		only := func(names types) func(*outbox.Config) {
			return func(c *outbox.Config) { c.Router, c.Sink = b.router(names), nil }
		}
		require.NoError(t, b.put(command("t1", "a1"))) // stored as "debit"
		renamed := types{reflect.TypeFor[debit](): {"withdrawal"}}
		require.NoError(t, b.relay(only(renamed)).Flush(t.Context()))
		require.Empty(t, b.delivered())
		require.EqualValues(t, 1, b.backlog().Pending)

		renamed[reflect.TypeFor[debit]()] = []string{"withdrawal", "debit"}
		require.NoError(t, b.relay(only(renamed)).Flush(t.Context()))
		require.Equal(t, []string{"a1"}, b.of("t1"))
	})
}

func TestP86UndecodableCommandIsParkedWithItsBytesAndCanBeRetried(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		b := newBench(t, db)
		only := func(c *outbox.Config) { c.Router, c.Sink = b.router(stored), nil }
		bad := command("t1", "a1")
		bad.Payload = `{"Amount":"ten"}`
		require.NoError(t, b.put(bad, command("t1", "a2")))
		require.NoError(t, b.relay(only).Flush(t.Context()))
		require.Equal(t, []string{"a2"}, b.of("t1"))
		p := b.parked()[0]
		require.Equal(t, bad.Payload, string(p.Payload))
		require.Contains(t, p.LastError, "outbox: decode debit into outbox_test.debit")

		_, err := db.Exec(t.Context(), "UPDATE {command} SET payload = ? WHERE seq = ?", `{"Amount":10}`, p.Seq)
		require.NoError(t, err)
		_, err = b.store.Retry(t.Context(), p.Seq)
		require.NoError(t, err)
		require.NoError(t, b.relay(only).Flush(t.Context()))
		require.Equal(t, []string{"a2", "a1"}, b.of("t1"))
	})
}
