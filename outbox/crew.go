package outbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

var errStopped = errors.New("outbox: stopped")

// crew is the workers of one Run or Flush, and the life that their deliveries have beyond its context.
type crew struct {
	life    context.Context
	end     context.CancelCauseFunc
	working sync.WaitGroup
}

func newCrew(ctx context.Context) *crew {
	c := &crew{}
	c.life, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

// wait returns when all workers are back. Once ctx has ended they keep the context of their deliveries
// for budget.
func (c *crew) wait(ctx context.Context, budget time.Duration) {
	back := make(chan struct{})
	go func() {
		c.working.Wait()
		close(back)
	}()
	select {
	case <-back:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(budget)
	defer timer.Stop()
	select {
	case <-back:
	case <-timer.C:
		c.end(errStopped)
		<-back
	}
}

// flights are the sagas that a worker is busy with.
type flights struct {
	mu   sync.Mutex
	busy map[saga]bool
}

func (f *flights) begin(s saga) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[s] {
		return false
	}
	f.busy[s] = true
	return true
}

func (f *flights) end(s saga) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, s)
}

func (f *flights) list() []saga {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]saga, 0, len(f.busy))
	for s := range f.busy {
		list = append(list, s)
	}
	return list
}
