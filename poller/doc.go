// Package poller fires deadlines: while it holds the lease, it sweeps what is due in batches, oldest
// first, and dispatches each on a goroutine of its own.
//
// Nothing that it keeps in memory decides what fires: every pass reads the table anew, and a deadline is
// gone only once the [Dispatcher] has claimed it in the transaction of its effects. A crash, a lost lease
// or two pollers at once therefore lose no deadline and fire none twice; the lease keeps the others from
// doing the same work in vain.
package poller
