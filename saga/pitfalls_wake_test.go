package saga_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/lease"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// soon schedules the deadline "t" for now.
func soon(s Scene) error { s.Schedule("t", 0); return nil }

func TestP29EventGetsThroughABurstOfDueDeadlines(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		const burst, batch = 300, 10
		s := newStage(t, db, saga.Config{Workers: 4})
		for i := range burst {
			s.begin(fmt.Sprint("due-", i), soon)
		}
		s.begin("other", nil)
		s.script.on("t", func(Scene) error { time.Sleep(time.Second); return nil })
		stop := s.run(s.poller(poller.Config{Interval: time.Minute, BatchSize: batch}, 10*time.Minute))
		time.Sleep(5 * time.Second)
		before := len(s.script.names())
		s.next("other", nil)
		require.Equal(t, 2, s.count("other"))
		require.LessOrEqual(t, len(s.script.names())-before, 2*batch+4, "the event waited for more than what was in flight")
		time.Sleep(burst * time.Second)
		stop()
		require.Len(t, s.script.names(), burst)
	})
}

func TestP57SweepingWhileSchedulingTakesNothingTwice(t *testing.T) {
	schematest.Each(t, func(t *testing.T, db *schema.DB) {
		const writers, each = 4, 40
		s := newStage(t, db, saga.Config{})
		locker := lease.New(db, "test", lease.Config{})
		p, err := poller.New(deadline.NewStore(db), locker, s.Engine, poller.Config{BatchSize: 5, Now: s.Now, Signal: s.signal})
		require.NoError(t, err)
		var writing errgroup.Group
		written := make(chan struct{})
		for w := range writers {
			writing.Go(func() error {
				for i := range each {
					if err := s.Handle(context.Background(), Begin{ID: fmt.Sprint(w, "-", i), Do: soon}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		go func() { _ = writing.Wait(); close(written) }()
		for open := true; open; {
			select {
			case <-written:
				open = false
			default:
			}
			require.NoError(t, p.Sweep(t.Context()))
		}
		require.NoError(t, writing.Wait())
		require.NoError(t, p.Sweep(t.Context()))
		require.Len(t, s.script.names(), writers*each)
		require.Zero(t, s.rows("{deadline}"))
		for w := range writers {
			for i := range each {
				require.Equal(t, 2, s.count(fmt.Sprint(w, "-", i)))
			}
		}
	})
}

// A pooler that hands out a connection per transaction looks like this to norn: nothing of a session
// is left for the next transaction.
func TestP82NoTransactionNeedsTheSessionOfAnother(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			db := schematest.Open(t, schematest.URL(t, name), schema.WithoutPrepare())
			db.SetMaxIdleConns(-1)
			s := newStage(t, db, saga.Config{})
			locker := lease.New(db, "test", lease.Config{})
			p, err := poller.New(deadline.NewStore(db), locker, s.Engine, poller.Config{Now: s.Now, Signal: s.signal})
			require.NoError(t, err)
			s.begin("one", func(sc Scene) error { sc.Schedule("v", 0); sc.Send(Note{"begun"}); sc.Add("tag", "x"); return nil })
			require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"x"}}, saga.WithID("n")))
			require.NoError(t, s.Handle(t.Context(), Next{Tag: []string{"x"}}, saga.WithID("n")))
			require.NoError(t, p.Sweep(t.Context()))
			require.Equal(t, 3, s.count("one"))
			require.True(t, s.instance("one").Ended)
			require.Equal(t, []string{"begun"}, s.notes())
			if name == "postgres" {
				var prepared int
				require.NoError(t, db.QueryRow("SELECT count(*) FROM pg_prepared_statements WHERE from_sql").Scan(&prepared))
				require.Zero(t, prepared)
			}
		})
	}
}

func TestP83WithoutWakeUpsPollingGoesOn(t *testing.T) {
	schematest.Bubble(t, func(t *testing.T, db *schema.DB) {
		writer, sweeper := newStage(t, db, saga.Config{}), newStage(t, db, saga.Config{})
		stop := sweeper.run(sweeper.poller(poller.Config{Interval: 30 * time.Second}, 2*time.Minute))
		time.Sleep(time.Second)
		writer.begin("one", soon)
		time.Sleep(30 * time.Second)
		stop()
		require.Equal(t, []string{"t"}, sweeper.script.names())
	})
}
