package saga

import (
	"cmp"
	"slices"
	"sync"
)

// job is one saga's part of an event.
type job struct {
	target target
	route  *route
	err    error
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
