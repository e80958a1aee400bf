// Package schema keeps norn's tables: their names, their migrations and the few things SQLite and
// Postgres say differently.
//
// A statement is written once, with tokens for what differs: {deadline} is the deadline table under
// its configured name, {lock} locks the rows read, {now} is the database's clock, {rows a text, b time}
// is a table made of a [Rows] argument; {unprepared} has the statement planned for its arguments each
// time, for those whose good plan depends on them. [DB] and [Tx] run such statements; no other package knows a
// table's name or a driver.
package schema
