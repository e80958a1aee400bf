// Package deadline keeps durable timers. A handler records them in a [Buffer]; a [Store] writes them
// in the transaction that saves the saga, finds them when they are due, and removes them by [Store.Claim]
// in the transaction that fires them. A deadline is therefore never stored without the state that
// wanted it, and its effects in the database happen once.
package deadline
