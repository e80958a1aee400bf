// Package run is the transfer example's main job: it reads an input, starts a transfer for each line, waits
// until all have ended, and counts what came of them.
//
// It may be killed at any moment and run again, or run several times at once on one Postgres, always with the same
// database and input. That is safe because nothing depends on what a process remembers: a transfer is started under
// an event id of its own, so a second start is ignored; everything between is norn's and the bank's; and what the
// summary says is read from the tables.
package run
