package saga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/norn-go/norn/schema"
)

// errRematch is a saga that is no longer what it was when it was matched: match again.
var errRematch = errors.New("the saga changed since it was matched")

// rematches bounds how often one event is matched anew.
const rematches = 10

// delivery is one event on its way to its sagas.
type delivery struct {
	engine   *Engine
	from     querier                // what matching reads from
	parallel bool                   // at once, for each saga has a transaction of its own; else in the order of (type, id)
	invoke   func(invocation) error // gives the event to one saga

	message Message
	done    map[Key]bool // the sagas that need it no more
}

// job is one saga's part of an event.
type job struct {
	target target
	route  *route
	err    error
}

// run matches the event and invokes each saga once, matching again those routes whose sagas changed meanwhile.
func (d *delivery) run(ctx context.Context, m Message) error {
	m, err := d.engine.checked(m) // an interceptor may have changed it
	if err != nil {
		return err
	}
	routes := d.engine.routes[reflect.TypeOf(m.Payload)]
	if len(routes) == 0 {
		d.engine.ignore(ctx, Key{}, m, "no handler takes the event")
		return nil
	}
	d.message, d.done = m, map[Key]bool{}
	var errs []error
	for range rematches {
		targets, err := d.engine.match(ctx, d.from, m, routes)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		changed, failed := d.invokeAll(ctx, d.jobs(ctx, routes, targets))
		errs = append(errs, failed...)
		if len(changed) == 0 {
			return errors.Join(errs...)
		}
		routes = slices.DeleteFunc(slices.Clone(routes), func(r *route) bool { return !changed[r] })
	}
	return errors.Join(append(errs, fmt.Errorf("saga: handle %T: %w: %w", m.Payload, schema.ErrConflict, errRematch))...)
}

func (d *delivery) jobs(ctx context.Context, routes []*route, targets map[*route][]target) (jobs []job) {
	for _, r := range routes {
		if len(targets[r]) == 0 {
			d.engine.ignore(ctx, Key{Type: r.def.name}, d.message, "no saga has its association")
		}
		for _, t := range targets[r] {
			if !d.done[t.key] {
				jobs = append(jobs, job{target: t, route: r})
			}
		}
	}
	return jobs
}

// invokeAll does the jobs and returns the routes to match again.
func (d *delivery) invokeAll(ctx context.Context, jobs []job) (changed map[*route]bool, errs []error) {
	runJobs(jobs, d.parallel, func(j *job) {
		j.err = d.invoke(invocation{
			engine: d.engine, key: j.target.key, def: j.route.def, event: &d.message, route: j.route, start: j.target.start,
		})
	})
	changed = map[*route]bool{}
	for _, j := range jobs {
		if errors.Is(j.err, errRematch) {
			changed[j.route] = true
			continue
		}
		d.done[j.target.key] = true
		if j.err != nil {
			d.engine.reportPanic(ctx, j.target.key, d.message, j.err)
			errs = append(errs, fmt.Errorf("saga: handle %T: %s: %w", d.message.Payload, j.target.key, j.err))
		}
	}
	return changed, errs
}

// runJobs runs all jobs and waits: at once, or one after the other in the order of (type, id), so that
// transactions lock several sagas in one order.
func runJobs(jobs []job, parallel bool, run func(*job)) {
	if !parallel || len(jobs) == 1 {
		slices.SortStableFunc(jobs, func(a, b job) int {
			return cmp.Or(cmp.Compare(a.target.key.Type, b.target.key.Type), cmp.Compare(a.target.key.ID, b.target.key.ID))
		})
		for i := range jobs {
			run(&jobs[i])
		}
		return
	}
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() { run(&jobs[i]) })
	}
	wg.Wait()
}
