package poller_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/poller"
	"github.com/norn-go/norn/schema"
)

func TestP46PollersGoOnAfterEveryStall(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		nodes := []*node{newNode(t, db), newNode(t, db)}
		for _, n := range nodes {
			defer n.run(t)()
		}
		for i, id := range ids("a", 3) {
			synctest.Wait()
			put(t, db, time.Now().Add(30*time.Second), id)
			tap.gone.Store(true)
			time.Sleep(time.Minute)
			tap.gone.Store(false)
			time.Sleep(2 * interval)
			synctest.Wait()
			require.Equal(t, i+1, count(t, db, "{event}"))
		}
	})
}

func TestP54OutageIsOneLineAtEachEnd(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		var log lines
		n := newNode(t, db, config(func(c *poller.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }))
		defer n.run(t)()
		synctest.Wait()
		log.take()
		tap.gone.Store(true)
		time.Sleep(20 * time.Second) // the lease survives this
		begin := log.take()
		require.Len(t, begin, 1)
		require.Contains(t, begin[0], `level=WARN msg="sweep trouble"`)
		tap.gone.Store(false)
		time.Sleep(time.Minute)
		end := log.take()
		require.Len(t, end, 1)
		require.Contains(t, end[0], `level=INFO msg="sweep trouble over"`)

		tap.gone.Store(true)
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, len(log.take()), 2) // the sweep's and the lease's
		tap.gone.Store(false)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(log.take()), 3)
	})
}

func TestP64SweepsGoOnAfterTheDatabaseIsBack(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		n := newNode(t, db)
		defer n.run(t)()
		synctest.Wait()
		put(t, db, time.Now().Add(5*time.Second), "a")
		tap.gone.Store(true)
		time.Sleep(15 * time.Second)
		tap.gone.Store(false)
		time.Sleep(6 * time.Second) // the longest pause between failing sweeps, and a little
		synctest.Wait()
		require.Equal(t, []string{"a"}, n.seen(&n.fired))
	})
}

func TestForeignKindsAreReportedOnceUntilTheyChange(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, _ *tap) {
		var log lines
		n := newNode(t, db, config(func(c *poller.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		}))
		putNamed(t, db, deadline.Kind{Type: "other-saga", Name: "x"}, time.Now(), "a", "b")
		defer n.run(t)()
		time.Sleep(time.Hour)
		first := log.take()
		require.Len(t, first, 1)
		require.Contains(t, first[0], "other-saga")
		putNamed(t, db, deadline.Kind{Type: "other-saga", Name: "y"}, time.Now(), "a")
		time.Sleep(time.Hour)
		require.Len(t, log.take(), 1)
	})
}

func TestFailureThatCannotBeRecordedLeavesTheRow(t *testing.T) {
	tapped(t, func(t *testing.T, db *schema.DB, tap *tap) {
		n := newNode(t, db, beforeClaim(func(context.Context, deadline.Due) error {
			tap.gone.Store(true)
			panic("no")
		}))
		put(t, db, time.Now(), "a")
		_ = n.Sweep(t.Context())
		tap.gone.Store(false)
		require.Zero(t, pending(t, db)[0].Attempts)
		require.EqualValues(t, 1, n.Stats().Left)
	})
}

// lines collects what is logged.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// take returns the lines since the last call.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buffer.Reset()
	text := strings.TrimSpace(l.buffer.String())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
