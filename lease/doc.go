// Package lease keeps at most one holder per name, in a row of a table.
//
// Work runs under [Locker.Hold], once, or [Locker.Run], for as long as the process lives. Its context
// ends with [ErrLost] before another process can take the lease: the holder trusts what it was told only
// until the start of its last successful attempt, by its monotonic clock, plus the TTL, less a tenth.
// Whether a lease has expired is judged by the database's clock alone.
//
// A lease saves work; it fences nothing. A process that is frozen right after it looked at its context goes
// on for a moment when it wakes, so what must happen once is to be guarded by the transaction that does it.
package lease
