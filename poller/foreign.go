package poller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/norn-go/norn/deadline"
)

// foreign is what is due here and known only to other builds.
type foreign struct {
	mu     sync.Mutex
	kinds  []deadline.Kind
	looked time.Time // process clock
}

// reportForeign looks for due deadlines that this build does not know, at most once an interval, and
// logs when the set of their kinds changes.
func (p *Poller) reportForeign(ctx context.Context, known []deadline.Kind, cutoff time.Time) error {
	if !p.foreign.turn(p.cfg.Interval) {
		return nil
	}
	kinds, err := p.store.Foreign(ctx, known, cutoff)
	if err != nil {
		return err
	}
	slices.SortFunc(kinds, func(a, b deadline.Kind) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	if !p.foreign.changed(kinds) {
		return nil
	}
	if len(kinds) == 0 {
		p.log.Info("no due deadlines of unknown kinds any more")
		return nil
	}
	p.log.Warn("due deadlines that this build does not know are left for another node", "kinds", kinds,
		"mend", "run a process whose saga types handle them; or give the type its former name with saga.Named, the deadline its saga.OnDeadline")
	return nil
}

func (f *foreign) turn(interval time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.looked.IsZero() && time.Since(f.looked) < interval {
		return false
	}
	f.looked = time.Now()
	return true
}

func (f *foreign) changed(kinds []deadline.Kind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.kinds, kinds) {
		return false
	}
	f.kinds = kinds
	return true
}

func (f *foreign) known() []deadline.Kind {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kinds)
}
