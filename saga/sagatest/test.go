package sagatest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/norn-go/norn/schema/schematest"
)

// Test runs body as a subtest of its own for each database, SQLite unless [On] says otherwise, each time in a
// testing/synctest bubble and on fresh tables. It starts at midnight UTC 2000-01-01 unless [StartAt] says otherwise.
//
// regs make up the saga type S of the name sagaType and what it needs, in any order: [saga.Option] and []saga.Option are
// its definition; a [*saga.Definition] and the saga types that an fx.Option registers (fxmodule.Saga) are the tested type
// itself, or others beside it; [saga.Naming] names stored types; an [Option] is one of this package. Services are never
// taken from an fx.Option: [Provide] them. Anything else fails the test, and so do a definition with mistakes and a
// service that handlers inject and nothing provides, by name.
func Test[S any](t *testing.T, sagaType string, body func(f *Fixture[S]), regs ...any) {
	t.Helper()
	k, err := register[S](sagaType, regs)
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range k.databases {
		t.Run(string(database), func(t *testing.T) {
			t.Helper()
			address := schematest.URL(t, string(database))
			synctest.Test(t, func(t *testing.T) {
				t.Helper()
				play(t, k, address, body)
			})
		})
	}
}

// play runs body on a stage of its own. The caller is in a bubble.
func play[S any](t testing.TB, k *kit, address string, body func(f *Fixture[S])) {
	t.Helper()
	time.Sleep(time.Until(k.start))
	s := newStage(t, k, address, nil)
	body(&Fixture[S]{Scope[S]{stage: s}})
	s.endAct()
}
