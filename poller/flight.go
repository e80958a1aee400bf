package poller

import (
	"context"
	"sync"

	"github.com/norn-go/norn/deadline"
)

// flight is what was selected and has not ended. Rows of one saga follow each other.
type flight struct {
	mu      sync.Mutex
	rows    map[string]bool // tokens
	last    map[saga]*row
	changed chan struct{} // closed when a row ends, then replaced
}

type saga struct{ kind, id string }

// row is one selected deadline.
type row struct {
	deadline.Due
	before *row          // of the same saga, nil: none
	ended  chan struct{} // closed at its end
}

func newFlight() *flight {
	return &flight{rows: map[string]bool{}, last: map[saga]*row{}, changed: make(chan struct{})}
}

func (f *flight) add(d deadline.Due) *row {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := saga{d.Type, d.ID}
	r := &row{Due: d, before: f.last[key], ended: make(chan struct{})}
	f.rows[d.Token], f.last[key] = true, r
	return r
}

func (f *flight) remove(r *row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rows, r.Token)
	if key := (saga{r.Type, r.ID}); f.last[key] == r {
		delete(f.last, key)
	}
	close(r.ended)
	close(f.changed)
	f.changed = make(chan struct{})
}

// turn waits until the row's saga has no earlier one in flight.
func (r *row) turn() {
	if r.before != nil {
		<-r.before.ended
		r.before = nil
	}
}

func (f *flight) tokens() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	tokens := make([]string, 0, len(f.rows))
	for token := range f.rows {
		tokens = append(tokens, token)
	}
	return tokens
}

func (f *flight) size() (n int, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rows), f.changed
}

// room waits until at most n rows are in flight.
func (f *flight) room(ctx context.Context, n int) error {
	for {
		size, changed := f.size()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if size <= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// drained waits until nothing is in flight.
func (f *flight) drained() { _ = f.room(context.Background(), 0) }
