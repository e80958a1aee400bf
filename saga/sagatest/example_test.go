package sagatest_test

import (
	"testing"
	"time"

	"github.com/norn-go/norn/fxmodule"
	"github.com/norn-go/norn/saga/sagatest"
)

// A debit that is not confirmed within half an hour is taken back, on SQLite and on Postgres.
func ExampleTest() {
	_ = func(t *testing.T) {
		sagatest.Test(t, "transfer-saga", func(f *sagatest.Fixture[TransferSaga]) {
			f.Given(TransferRequested{"t1", "alice", "bob", amount})
			f.WhenTimePasses(30 * time.Minute)
			f.ExpectCommands(ReverseDebit{"alice", amount})
			f.ExpectEnded()
		}, Transfers, sagatest.OnBoth())
	}
}

// The module of the application could start.
func ExampleCheck() {
	_ = func(t *testing.T) {
		sagatest.Check(t, Transfers, fxmodule.ConfigFile(""))
	}
}
