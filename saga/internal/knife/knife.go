// Package knife cuts the connections of a pool at a chosen statement, as a network or the death of a process would.
package knife

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// ErrCut is how a driver reports that its connection broke.
var ErrCut = fmt.Errorf("the connection was cut: %w", io.ErrUnexpectedEOF)

// Fault is what goes wrong at a statement: the one of this number. Each Begin, Exec, Query and Commit counts.
type Fault struct {
	At    int  // 1 first; 0: nothing goes wrong
	After bool // the statement was run, and its answer is lost
	Die   bool // not only its connection is cut: the process ends
}

// Knife cuts connections of one process' pools. It counts and cuts only while it is watching.
type Knife struct {
	err   error
	onDie func()

	mu         sync.Mutex
	watching   bool
	count      int
	fault      Fault
	met        string // the statement that met the fault
	hit        bool
	generation int // of processes: connections of earlier ones are dead
	dead       bool
}

// New makes a knife that does nothing yet. Statements that it cuts fail with err; onDie is called when a fault ends
// the process, before that statement returns.
func New(err error, onDie func()) *Knife { return &Knife{err: err, onDie: onDie} }

// Arm sets what goes wrong, and counts from 0 again.
func (k *Knife) Arm(f Fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count, k.fault, k.hit, k.met = 0, f, false, ""
}

// Watch says whether statements are counted and cut from here on. A dead process stays dead.
func (k *Knife) Watch(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watching = on
}

// Count is how many statements there were since the knife was armed.
func (k *Knife) Count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count
}

// Met tells the statement that met the fault, if one did.
func (k *Knife) Met() (statement string, hit bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.met, k.hit
}

// Revive begins another process: connections opened from here on live.
func (k *Knife) Revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = false
	k.generation++
}

type sparedKey struct{}

// Spared makes a context whose statements are neither counted nor cut, even in a dead process: for those who look on.
func Spared(ctx context.Context) context.Context { return context.WithValue(ctx, sparedKey{}, true) }

func spared(ctx context.Context) bool { return ctx.Value(sparedKey{}) != nil }

// begins says which process a new connection belongs to, if it may be opened.
func (k *Knife) begins(ctx context.Context) (generation int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead && !spared(ctx) {
		return 0, k.err
	}
	return k.generation, nil
}

// cut says what a statement meets.
func (k *Knife) cut(ctx context.Context, generation int, statement string) (before, after bool) {
	if spared(ctx) {
		return false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead || generation != k.generation {
		return true, false
	}
	if !k.watching {
		return false, false
	}
	if k.count++; k.count != k.fault.At {
		return false, false
	}
	k.hit, k.met = true, statement
	if k.fault.Die {
		k.dead = true
		k.onDie()
	}
	return !k.fault.After, k.fault.After
}
