package fxmodule_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// neighbour is another part of the application, which starts after norn.
func neighbour(onStart, onStop func(context.Context) error) fx.Option {
	return fx.Invoke(func(l fx.Lifecycle, _ *poller.Poller) {
		l.Append(fx.Hook{OnStart: onStart, OnStop: onStop})
	})
}

// settle lets the application take its leases.
func settle() { synctest.Wait() }

func TestP41ASiblingThatFailsToStartLeavesNoLeaseHeld(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		app := newApp(address, orders(), shop(&j), neighbour(func(context.Context) error {
			settle()
			require.Len(t, leases(t, look(t, address)), 2)
			return errors.New("port is taken")
		}, nil))
		require.ErrorContains(t, app.Start(t.Context()), "port is taken")
		db := look(t, address)
		requireNoLeaseHeld(t, db)

		run(t, address, orders(), shop(&j))
		settle()
		for _, row := range leases(t, db) {
			require.EqualValues(t, 2, row.Term)
			require.True(t, row.Expires.After(time.Now()))
		}
	})
}

func TestP41ASiblingThatFailsToStartLeavesNoGoroutine(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		before := goleak.IgnoreCurrent()
		var j journal
		app := newApp(address, orders(), shop(&j),
			fxmodule.Override("saga.clock", "database"), fxmodule.Override("saga.wake.listen", "true"),
			neighbour(func(context.Context) error { return errors.New("port is taken") }, nil))
		require.ErrorContains(t, app.Start(t.Context()), "port is taken")
		require.NoError(t, goleak.Find(before))
	})
}

func TestP77AHangingNeighbourAtTheStartLeavesNothingRunning(t *testing.T) {
	for name, hang := range map[string]func(context.Context) error{
		"that looks at its context":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"that comes to an end later": func(context.Context) error { time.Sleep(time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, address string) {
				var j journal
				var db *schema.DB
				app := newApp(address, orders(), shop(&j), fx.Populate(&db), neighbour(hang, nil))
				ctx, cancel := context.WithTimeout(t.Context(), app.StartTimeout())
				defer cancel()
				require.ErrorIs(t, app.Start(ctx), context.DeadlineExceeded)
				time.Sleep(10 * time.Second)
				require.ErrorContains(t, db.Ping(), "closed")
				requireNoLeaseHeld(t, look(t, address))
				require.NoError(t, app.Stop(t.Context()))
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

func TestP77ACancelledStartLeavesNothingRunning(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		var db *schema.DB
		ctx, cancel := context.WithCancel(t.Context())
		app := newApp(address, orders(), shop(&j), fx.Populate(&db), neighbour(func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, nil))
		require.ErrorIs(t, app.Start(ctx), context.Canceled)
		time.Sleep(10 * time.Second)
		require.ErrorContains(t, db.Ping(), "closed")
		requireNoLeaseHeld(t, look(t, address))
	})
}

func TestP77TheEndOfTheStartsContextDoesNotStopAnApplicationThatStarted(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		for _, end := range []func(context.Context, context.CancelFunc){
			func(_ context.Context, cancel context.CancelFunc) { cancel() },
			func(ctx context.Context, _ context.CancelFunc) { <-ctx.Done() },
		} {
			var j journal
			var p *poller.Poller
			app := newApp(address, orders(), shop(&j), fx.Populate(&p))
			ctx, cancel := context.WithTimeout(t.Context(), app.StartTimeout())
			require.NoError(t, app.Start(ctx))
			end(ctx, cancel)
			time.Sleep(time.Hour)
			require.True(t, p.Stats().Leading)
			stop(t, app)
			requireNoLeaseHeld(t, look(t, address))
			cancel()
		}
	})
}

// stuck is a saga whose deadline handler waits for a channel and nothing else.
func stuck(release <-chan struct{}) fx.Option {
	return fxmodule.Saga[Order]("order-saga",
		saga.Start((*Order).OnOrdered, saga.By("order")),
		saga.OnDeadline(unpaid, func(*Order) { <-release }, saga.Ends()),
	)
}

func TestP77ABlockedHandlerAtTheStopDoesNotKeepTheDatabaseOpen(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var db *schema.DB
		var engine *saga.Engine
		var p *poller.Poller
		release := make(chan struct{})
		app := newApp(address, stuck(release), fx.Populate(&db, &engine, &p))
		start(t, app)
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		time.Sleep(30*time.Minute + time.Second)
		require.Equal(t, 1, p.Stats().InFlight)

		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), app.StopTimeout())
		defer cancel()
		err := app.Stop(ctx)
		require.ErrorContains(t, err, "fxmodule: the poller did not stop in its time and was left behind")
		require.ErrorContains(t, err, "fxmodule: the engine did not stop in its time and was left behind")
		require.NoError(t, ctx.Err())
		require.Less(t, time.Since(begun), app.StopTimeout())
		require.ErrorContains(t, db.Ping(), "closed")
		close(release)
		synctest.Wait()

		var j journal
		again := run(t, address, orders(), shop(&j))
		time.Sleep(3 * time.Minute) // the lease was not given back
		pending, err := again.Deadlines(t.Context(), saga.Key{Type: "order-saga", ID: "o1"})
		require.NoError(t, err)
		require.Empty(t, pending)
		require.Equal(t, []string{"remind o1"}, j.list())
	})
}

func TestP77ASlowNeighbourAtTheStopDoesNotKeepTheDatabaseOpen(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		var db *schema.DB
		app := newApp(address, orders(), shop(&j), fx.Populate(&db), fx.Invoke(func(l fx.Lifecycle, _ *saga.Engine) {
			l.Append(fx.Hook{OnStop: func(context.Context) error { time.Sleep(time.Minute); return nil }})
		}))
		start(t, app)
		ctx, cancel := context.WithTimeout(t.Context(), app.StopTimeout())
		defer cancel()
		require.ErrorIs(t, app.Stop(ctx), context.DeadlineExceeded)
		time.Sleep(time.Second)
		require.ErrorContains(t, db.Ping(), "closed")
		requireNoLeaseHeld(t, look(t, address))
		time.Sleep(time.Minute)
	})
}

func TestP44ASlowHandlerKeepsItsLeaseWhileTheApplicationStops(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var engine *saga.Engine
		var begun, ended atomic.Bool
		app := newApp(address,
			fxmodule.Override("saga.deadline.lease-ttl", "3s"), fxmodule.Override("saga.deadline.polling.interval", "1s"),
			fx.Populate(&engine), orders(),
			fxmodule.CommandHandler(func(context.Context, Ship) error {
				begun.Store(true)
				time.Sleep(5 * time.Second)
				ended.Store(true)
				return nil
			}))
		start(t, app)
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
		settle()
		require.True(t, begun.Load())
		db := look(t, address)
		var watching sync.WaitGroup
		watching.Go(func() {
			time.Sleep(4 * time.Second) // longer than the lease lasts without renewal
			require.False(t, ended.Load())
			require.True(t, leases(t, db)[1].Expires.After(time.Now()))
		})
		stop(t, app)
		require.True(t, ended.Load())
		watching.Wait()
		requireNoLeaseHeld(t, db)
		var j journal
		run(t, address, orders(), shop(&j))
		time.Sleep(time.Hour)
		require.Empty(t, j.list())
	})
}

func TestP85AStopCostsNoAttemptAndLosesNoWork(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var engine *saga.Engine
		interrupted := false
		interruptible := fxmodule.Saga[Order]("order-saga",
			saga.Start((*Order).OnOrdered, saga.By("order")),
			saga.OnDeadline(unpaid, func(_ *Order, ctx context.Context) error {
				<-ctx.Done()
				interrupted = true
				return ctx.Err()
			}),
		)
		app := newApp(address, interruptible, fx.Populate(&engine))
		start(t, app)
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		time.Sleep(30*time.Minute + time.Second)
		stop(t, app)
		require.True(t, interrupted)

		var j journal
		var r *outbox.Relay
		again := newApp(address, orders(), shop(&j), fx.Populate(&engine, &r), fxmodule.Override("saga.deadline.polling.enabled", "false"))
		start(t, again)
		pending, err := engine.Deadlines(t.Context(), saga.Key{Type: "order-saga", ID: "o1"})
		require.NoError(t, err)
		require.Len(t, pending, 1)
		require.Zero(t, pending[0].Attempts)
		stop(t, again)

		run(t, address, orders(), shop(&j))
		time.Sleep(time.Second)
		require.Equal(t, []string{"remind o1"}, j.list())
	})
}

func TestP24WhatCameDueWhileTheApplicationWasDownFiresOnce(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		var j journal
		var engine *saga.Engine
		app := newApp(address, orders(), shop(&j), fx.Populate(&engine))
		start(t, app)
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		stop(t, app)
		time.Sleep(time.Hour)
		run(t, address, orders(), shop(&j))
		time.Sleep(time.Hour)
		require.Equal(t, []string{"remind o1"}, j.list())
	})
}

func TestAnApplicationStartsAndStopsFiveTimes(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		before := goleak.IgnoreCurrent()
		for range 5 {
			var j journal
			app := newApp(address, orders(), shop(&j),
				fxmodule.Override("saga.clock", "database"), fxmodule.Override("saga.wake.listen", "true"))
			start(t, app)
			stop(t, app)
			require.NoError(t, goleak.Find(before))
		}
		requireNoLeaseHeld(t, look(t, address))
	})
}

func TestEachStartTakesTheLeaseAnewAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, address string) {
		for n := range int64(5) {
			var j journal
			app := newApp(address, orders(), shop(&j))
			start(t, app)
			settle()
			for _, row := range leases(t, look(t, address)) {
				require.Equal(t, n+1, row.Term)
				require.True(t, row.Expires.After(time.Now()))
			}
			stop(t, app)
		}
	})
}

func TestAnApplicationThatWasStoppedIsNotStartedAgain(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		app := newApp(address, orders())
		start(t, app)
		stop(t, app)
		require.ErrorContains(t, app.Start(t.Context()), "make a new one")
	})
}

func TestP69HealthChecksBesideTheStartChangeNothing(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		shipped := make(chan string, 2)
		var engine *saga.Engine
		var p *poller.Poller
		var r *outbox.Relay
		app := newApp(address, orders(), fx.Populate(&engine, &p, &r),
			fxmodule.CommandHandler(func(_ context.Context, c Ship) error { shipped <- c.Order; return nil }))
		var checks sync.WaitGroup
		for range 4 {
			checks.Go(func() {
				for range 50 {
					require.Len(t, engine.Kinds(), 1)
					engine.Stats()
					p.Stats()
					r.Stats()
				}
			})
		}
		start(t, app)
		checks.Wait()
		require.NoError(t, engine.Handle(t.Context(), Ordered{"o1"}))
		require.NoError(t, engine.Handle(t.Context(), Paid{"o1"}))
		require.Equal(t, "o1", <-shipped)
		stop(t, app)
		require.Empty(t, shipped)
	})
}
