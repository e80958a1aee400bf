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

// Explore is [Crash] on one database, with the bubbles that its caller makes.
func Explore[S any](t testing.TB, bubble func(run func(t testing.TB)), sagaType string, scenario func(f *Fixture[S]), regs ...any) {
	t.Helper()
	k, err := register[S](sagaType, regs)
	if err != nil {
		t.Fatal(err)
	}
	explore(t, k, newGround(t, k.databases[0]), scenario, bubble)
}

// Spread is the order in which n statements are tried.
func Spread(n int) []int { return spread(n) }
