// Package bench holds the benchmarks of the whole: the engine beside a loop written by hand that says the same
// statements, both in one run, so that their ratio counts and not the machine.
package bench
