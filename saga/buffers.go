package saga

import (
	"maps"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/norn-go/norn/deadline"
)

// Commands takes the commands that a saga sends. They are stored with its state and delivered after the
// commit, in this order, at least once.
type Commands interface {
	// Send records a command. It returns nothing: what cannot be stored fails the invocation.
	Send(command any, opts ...CommandOption)
}

// Deadlines takes what a handler wants of its saga's deadlines. Per name the last call counts; all
// applies when the saga commits.
type Deadlines interface {
	// Schedule arms the deadline to fire after a duration from now, replacing a pending one of that
	// name. Zero and negative durations are due at once.
	Schedule(name string, after time.Duration, opts ...deadline.Option)
	// ScheduleAt arms the deadline to fire at a time; one in the past is due at once.
	ScheduleAt(name string, at time.Time, opts ...deadline.Option)
	// Cancel removes the deadline; if none is pending it does nothing.
	Cancel(name string)
}

// Lifecycle lets a handler end its saga.
type Lifecycle interface {
	// End makes the saga a tombstone when this invocation commits: its deadlines and associations go,
	// its commands are kept.
	End()
}

// Associations lets a handler change by which events its saga is found. Changes count from the next
// message on.
type Associations interface {
	// Add lets events whose property has the value find this saga. Twice is once.
	Add(property, value string)
	// Remove takes an association back; without one it does nothing.
	Remove(property, value string)
}

// Firing tells a deadline handler what fired.
type Firing struct {
	Name     string
	Due      time.Time // when it was to fire
	At       time.Time // the framework clock at this attempt
	Attempt  int       // 1 first
	Metadata Metadata  // empty until there are derived deadlines, which will carry some
}

// Tx is the invocation's own SQL transaction, for the application's tables. What is written in it commits
// with the saga or not at all. Ending it is the engine's: a handler that tries to, or that SQLite does it for (ON
// CONFLICT ROLLBACK), fails with [schema.ErrEnded], and after the handler has returned it refuses to be used.
type Tx = sqlx.ExtContext

type sentCommand struct {
	value    any
	metadata Metadata
}

type pair struct{ property, value string }

// buffers records what one attempt of a handler wants. After the handler returned it is sealed.
type buffers struct {
	deadlines *deadline.Buffer
	misuse    func(what string)

	mu           sync.Mutex
	sealed       bool
	commands     []sentCommand
	ended        bool
	associations map[pair]bool // true: add, false: remove
	order        []pair
}

func newBuffers(now func() time.Time, misuse func(what string)) *buffers {
	return &buffers{
		deadlines:    deadline.NewBuffer(now, func(name string) { misuse("deadline " + name) }),
		misuse:       misuse,
		associations: map[pair]bool{},
	}
}

// record runs fn unless the handler returned already.
func (b *buffers) record(what string, fn func()) {
	b.mu.Lock()
	sealed := b.sealed
	if !sealed {
		fn()
	}
	b.mu.Unlock()
	if sealed {
		b.misuse(what)
	}
}

func (b *buffers) seal() []deadline.Operation {
	b.mu.Lock()
	b.sealed = true
	b.mu.Unlock()
	return b.deadlines.Seal()
}

type commandBuffer struct{ *buffers }

func (b commandBuffer) Send(command any, opts ...CommandOption) {
	c := sentCommand{value: command}
	for _, opt := range opts {
		opt.applyCommand(&c)
	}
	c.metadata = maps.Clone(c.metadata)
	b.record("command", func() { b.commands = append(b.commands, c) })
}

type lifecycleBuffer struct{ *buffers }

func (b lifecycleBuffer) End() { b.record("end", func() { b.ended = true }) }

type associationBuffer struct{ *buffers }

func (b associationBuffer) Add(property, value string)    { b.change(pair{property, value}, true) }
func (b associationBuffer) Remove(property, value string) { b.change(pair{property, value}, false) }

func (b associationBuffer) change(p pair, add bool) {
	b.record("association "+p.property, func() {
		if _, known := b.associations[p]; !known {
			b.order = append(b.order, p)
		}
		b.associations[p] = add
	})
}
