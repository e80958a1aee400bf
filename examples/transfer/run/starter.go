package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/norn-go/norn/examples/transfer/bank"
	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

const (
	startChunk   = 32
	startWorkers = 8
	// startBacklog is how many undelivered commands and confirmations keep more transfers from being started. Without it the
	// banks of a slow machine would fall so far behind that transfers time out for that alone.
	startBacklog = 64
	startPause   = 10 * time.Millisecond
	// troublePause is the wait before something is tried again that the database did not let through.
	troublePause = 500 * time.Millisecond
)

// starter starts transfers and knows which it has.
type starter struct {
	app     *app
	mu      sync.Mutex
	started []string // only ever appended to
}

func newStarter(a *app) *starter { return &starter{app: a} }

// run starts all orders that are not started yet, no faster than banks and sagas follow.
func (s *starter) run(ctx context.Context, orders []input.Order) error {
	for chunk := range slices.Chunk(orders, startChunk) {
		if err := s.room(ctx); err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(startWorkers)
		for _, o := range chunk {
			group.Go(func() error { return s.start(ctx, o) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// room waits until few commands and confirmations wait.
func (s *starter) room(ctx context.Context) error {
	for {
		backlog, err := s.backlog(ctx)
		pause := startPause
		switch {
		case transient(err):
			pause = troublePause
		case err != nil:
			return fmt.Errorf("start transfers: %w", err)
		case backlog < startBacklog:
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

func (s *starter) backlog(ctx context.Context) (int64, error) {
	commands, err := s.app.outbox.Backlog(ctx)
	if err != nil {
		return 0, err
	}
	overdue, err := bank.Overdue(ctx, s.app.db)
	return commands.Pending + overdue, err
}

// start starts one transfer; if it was started before, also by another process, nothing happens.
func (s *starter) start(ctx context.Context, o input.Order) error {
	event := transfer.TransferRequested{TransferID: o.TransferID, SourceAccountID: o.SourceAccountID, TargetAccountID: o.TargetAccountID, Amount: o.Amount}
	for {
		err := s.app.engine.Handle(ctx, event, saga.WithID("requested/"+o.TransferID))
		switch {
		case err == nil:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.started = append(s.started, o.TransferID)
			return nil
		case !transient(err):
			return fmt.Errorf("start transfer %s: %w", o.TransferID, err)
		}
		if err := wait(ctx, troublePause); err != nil {
			return err
		}
	}
}

// soFar lists the transfers started by now.
func (s *starter) soFar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// transient reports whether the database may take tomorrow what it did not take today.
func transient(err error) bool {
	return schema.Retryable(err) || errors.Is(err, saga.ErrUnknownOutcome)
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
