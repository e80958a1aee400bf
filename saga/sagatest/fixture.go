package sagatest

import (
	"context"
	"testing"
	"time"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
)

// Fixture drives one saga type through a test. Its methods belong to the test's goroutine.
type Fixture[S any] struct {
	Scope[S] // all sagas of the type
}

// Scope is the sagas that steps and expectations are about: all of the fixture's type, or the one of [Fixture.Saga].
// What concerns a single saga (its state, say) finds it by itself while there is only one, and else ends the test.
type Scope[S any] struct {
	stage *stage
	id    string // empty: all of the type
}

// Saga narrows steps and expectations to the saga of an id, which need not exist yet.
func (f *Fixture[S]) Saga(id string) *Scope[S] { return &Scope[S]{f.stage, id} }

// T is the test of the subtest that body runs in, for requirements of one's own.
func (f *Fixture[S]) T() testing.TB { return f.stage.t }

// Context is a context for calls of one's own. It ends with the test.
func (f *Fixture[S]) Context() context.Context { return f.stage.t.Context() }

// Now is the virtual time.
func (f *Fixture[S]) Now() time.Time { return f.stage.engine.Now() }

// Engine is the engine that runs the sagas; after [Fixture.WhenRestarted] it is another one. What a test does with it
// beside the fixture counts to the step before.
func (f *Fixture[S]) Engine() *saga.Engine { return f.stage.engine }

// DB is the database, for the application's own tables; after [Fixture.WhenRestarted] it is another pool.
func (f *Fixture[S]) DB() *schema.DB { return f.stage.db }

// Observe notes a value of the scenario's world for [Crash]: an account's balance, the rows of an application's table, what a
// fake was told. Every run must find the same there. In [Test] it only stands in the history.
func (f *Fixture[S]) Observe(what string, value any) {
	f.stage.t.Helper()
	f.stage.history.goes(what + ": " + observation(value))
	if f.stage.run != nil {
		f.stage.run.observes(f.stage, what, value)
	}
}

// holds tells whether the scope has the saga.
func (s *Scope[S]) holds(key saga.Key) bool {
	return key.Type == s.stage.kit.sagaType && (s.id == "" || s.id == key.ID)
}

// one is the key of the scope's only saga. Without one the test ends.
func (s *Scope[S]) one() saga.Key {
	s.stage.t.Helper()
	var found []saga.Key
	for _, key := range s.stage.seen.keys(s.stage.kit.sagaType) {
		if s.holds(key) {
			found = append(found, key)
		}
	}
	switch {
	case len(found) == 1:
		return found[0]
	case s.id != "":
		s.stage.t.Fatalf("sagatest: there is no saga %s/%s\n%s", s.stage.kit.sagaType, s.id, s.stage.history)
	case len(found) == 0:
		s.stage.t.Fatalf("sagatest: there is no %s yet\n%s", s.stage.kit.sagaType, s.stage.history)
	}
	s.stage.t.Fatalf("sagatest: there are %d sagas, %v: say which one, by Saga(id)\n%s", len(found), found, s.stage.history)
	return saga.Key{}
}
