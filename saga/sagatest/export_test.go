package sagatest

import "testing"

// Play is [Test] without subtest and bubble, so that what it does to its test can be looked at.
func Play[S any](t testing.TB, address, sagaType string, body func(f *Fixture[S]), regs ...any) {
	t.Helper()
	k, err := register[S](sagaType, regs)
	if err != nil {
		t.Fatal(err)
	}
	play(t, k, address, body)
}
