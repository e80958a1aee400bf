package deadline

import (
	"fmt"
	"sync"
	"time"

	"github.com/norn-go/norn/schema"
)

// Buffer records what one attempt of a handler wants of its saga's deadlines. It does no I/O. Per
// name the last call counts (SEMANTICS 1.14). It is safe for concurrent use.
type Buffer struct {
	now    func() time.Time
	misuse func(name string)
	mu     sync.Mutex
	order  []string
	last   map[string]Operation
	sealed bool
}

// NewBuffer makes a buffer that counts durations from now at each call. A call after [Buffer.Seal]
// records nothing and is told to misuse.
func NewBuffer(now func() time.Time, misuse func(name string)) *Buffer {
	return &Buffer{now: now, misuse: misuse, last: map[string]Operation{}}
}

// Operation is what is left of a buffer's calls for one name.
type Operation struct {
	Name       string
	Cancel     bool // remove the deadline; the fields below say nothing
	Due        time.Time
	Payload    any
	HasPayload bool
	PublicID   string // empty: the default of [DefaultPublicID]
	Err        error  // what made the call unusable
}

// Option is an optional part of a scheduled deadline.
type Option func(*Operation)

// WithPayload stores v with the deadline; its handler gets an equal value. If the handler declares a
// payload, v must be of that type.
func WithPayload(v any) Option {
	return func(o *Operation) { o.Payload, o.HasPayload = v, true }
}

// WithPublicID names the deadline for cancellation from outside. Pending ids are unique: one that
// another deadline holds fails the invocation.
func WithPublicID(id string) Option { return func(o *Operation) { o.PublicID = id } }

// Schedule arms the deadline to fire after a duration from now; zero and negative ones are due at once.
func (b *Buffer) Schedule(name string, after time.Duration, opts ...Option) {
	due := b.now().Add(after)
	op := Operation{Name: name, Due: due}
	if overflows := after > 0 && due.Before(b.now().Add(-time.Hour)); overflows {
		op.Err = fmt.Errorf("deadline: schedule %q after %v: the due time overflows", name, after)
	}
	b.record(op, opts)
}

// ScheduleAt arms the deadline to fire at a time; one in the past is due at once.
func (b *Buffer) ScheduleAt(name string, at time.Time, opts ...Option) {
	b.record(Operation{Name: name, Due: at}, opts)
}

// Cancel removes the deadline if it is pending.
func (b *Buffer) Cancel(name string) { b.record(Operation{Name: name, Cancel: true}, nil) }

func (b *Buffer) record(op Operation, opts []Option) {
	for _, opt := range opts {
		opt(&op)
	}
	if !op.Cancel && op.Err == nil {
		op.Due, op.Err = checkDue(op.Name, op.Due)
	}
	b.mu.Lock()
	sealed := b.sealed
	if !sealed {
		if _, known := b.last[op.Name]; !known {
			b.order = append(b.order, op.Name)
		}
		b.last[op.Name] = op
	}
	b.mu.Unlock()
	if sealed && b.misuse != nil {
		b.misuse(op.Name)
	}
}

// Seal ends recording and returns the operations, one a name, in the order the names first came up.
func (b *Buffer) Seal() []Operation {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sealed = true
	ops := make([]Operation, len(b.order))
	for i, name := range b.order {
		ops[i] = b.last[name]
	}
	return ops
}

// checkDue cuts a due time to what is stored and refuses what is none: the zero time and all outside
// the years 1 to 9999 (SEMANTICS 1.9).
func checkDue(name string, due time.Time) (time.Time, error) {
	if due.IsZero() {
		return due, fmt.Errorf("deadline: schedule %q: the zero time is no due time", name)
	}
	due = schema.Microseconds(due)
	if year := due.Year(); year < 1 || year > 9999 {
		return due, fmt.Errorf("deadline: schedule %q: due in the year %d: want 1 to 9999", name, year)
	}
	return due, nil
}
