package run

import (
	"context"
	"fmt"
	"time"

	"github.com/norn-go/norn/examples/transfer/transfer"
	"github.com/norn-go/norn/saga"
)

const watchEvery = 100 * time.Millisecond

// watch shows how many transfers have ended and returns when no transfer and no command is on its way any
// more, or only such that are parked.
func (a *app) watch(ctx context.Context, s *starter, total int, show func(ended int)) error {
	for {
		started := s.soFar() // before the look: what is not among the live then has ended
		live, moving, err := a.look(ctx)
		pause := watchEvery
		switch {
		case transient(err):
			pause = troublePause
		case err != nil:
			return fmt.Errorf("watch: %w", err)
		default:
			show(without(started, live))
			if len(started) == total && !moving {
				return nil
			}
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// without counts the ids that are not in the set.
func without(ids []string, set map[string]bool) (n int) {
	for _, id := range ids {
		if !set[id] {
			n++
		}
	}
	return n
}

// look lists the live transfers, and tells whether anything moves of itself.
func (a *app) look(ctx context.Context) (live map[string]bool, moving bool, err error) {
	stuck, err := a.stuck(ctx)
	if err != nil {
		return nil, false, err
	}
	live = map[string]bool{}
	for i, err := range a.engine.Instances(ctx, saga.Query{Type: transfer.Type, Status: saga.Live}) {
		if err != nil {
			return nil, false, err
		}
		live[i.ID] = true
		moving = moving || !stuck[i.ID]
	}
	backlog, err := a.outbox.Backlog(ctx)
	return live, moving || backlog.Pending > 0, err
}

// stuck lists the transfers with a parked deadline: they do not end before an operator retries it.
func (a *app) stuck(ctx context.Context) (map[string]bool, error) {
	stuck := map[string]bool{}
	for p, err := range a.engine.Parked(ctx, saga.Query{Type: transfer.Type}) {
		if err != nil {
			return nil, err
		}
		if p.Kind == saga.ParkedDeadline {
			stuck[p.Saga.ID] = true
		}
	}
	return stuck, nil
}
