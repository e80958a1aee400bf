package keyed

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func do(t *testing.T, p *Pool[string], key string, fn func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Do(t.Context(), key, fn) }()
	synctest.Wait() // it is queued, or runs
	return done
}

func TestJobsOfOneKeyRunInOrderOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](8)
		defer p.Close()
		var order []int
		var done []<-chan error
		for i := range 10 {
			done = append(done, do(t, p, "k", func() error {
				time.Sleep(time.Second)
				order = append(order, i)
				return nil
			}))
		}
		begun := time.Now()
		for _, d := range done {
			require.NoError(t, <-d)
		}
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	})
}

func TestJobsOfOtherKeysRunInParallelUpToTheSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](3)
		defer p.Close()
		var done []<-chan error
		begun := time.Now()
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			done = append(done, do(t, p, key, func() error { time.Sleep(time.Second); return nil }))
		}
		for _, d := range done {
			require.NoError(t, <-d)
		}
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}

func TestErrorOfTheJobIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](1)
		no := errors.New("no")
		require.ErrorIs(t, p.Do(t.Context(), "k", func() error { return no }), no)
		require.NoError(t, p.Do(t.Context(), "k", func() error { return nil }))
		p.Close()
		require.Empty(t, p.queues) // a key without jobs costs nothing
	})
}

func TestQueuedJobWhoseContextEndsIsNeverCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](1)
		proceed := make(chan struct{})
		running := do(t, p, "k", func() error { <-proceed; return nil })
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		queued, elsewhere := make(chan error, 1), make(chan error, 1)
		go func() { queued <- p.Do(ctx, "k", func() error { t.Error("called"); return nil }) }()
		go func() { elsewhere <- p.Do(ctx, "other", func() error { t.Error("called"); return nil }) }()
		synctest.Wait()
		cancel(cause)
		require.ErrorIs(t, <-queued, cause)
		require.ErrorIs(t, <-elsewhere, cause)
		close(proceed)
		require.NoError(t, <-running)
		p.Close()
	})
}

func TestRunningJobIsWaitedForAlthoughItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](1)
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		require.NoError(t, p.Do(ctx, "k", func() error { cancel(); time.Sleep(time.Second); ended = true; return nil }))
		require.True(t, ended)
	})
}

func TestCloseWaitsForTheJobsItHasAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](1)
		ran := 0
		job := func() error { time.Sleep(time.Second); ran++; return nil }
		one, two := do(t, p, "a", job), do(t, p, "b", job)
		closed := make(chan struct{})
		go func() { p.Close(); close(closed) }()
		synctest.Wait()
		require.ErrorIs(t, p.Do(t.Context(), "a", job), ErrClosed)
		<-closed
		require.Equal(t, 2, ran)
		require.NoError(t, errors.Join(<-one, <-two))
		p.Close()
	})
}

func TestJobThatEndsItsGoroutineFailsAndTheNextOneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[string](1)
		proceed := make(chan struct{})
		gone := do(t, p, "k", func() error { <-proceed; runtime.Goexit(); return nil })
		next := do(t, p, "k", func() error { return nil })
		close(proceed)
		require.ErrorIs(t, <-gone, errAbandoned)
		require.NoError(t, <-next)
		p.Close() // also after it was the last one
		require.ErrorIs(t, New[string](1).Do(t.Context(), "k", func() error { runtime.Goexit(); return nil }), errAbandoned)
	})
}

func TestManyJobsOnFewKeysNeverOverlapAndNoneIsLost(t *testing.T) {
	p := New[int](4)
	counts := make([]int, 5) // each touched by one job at a time: the race detector sees
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			_ = p.Do(context.Background(), i%5, func() error { counts[i%5]++; return nil })
		})
	}
	wg.Wait()
	p.Close()
	require.Equal(t, []int{200, 200, 200, 200, 200}, counts)
}
