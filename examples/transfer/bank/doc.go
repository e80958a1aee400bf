// Package bank stands for the banks of the transfer example: command handlers over a table of accounts, in
// the database that also holds the sagas.
//
// Commands arrive at least once. Whatever a command changes commits together with a booking whose key is the
// transfer and the command's type, so a command that arrives again finds its booking and does nothing. A
// reversal books the opposite of what its counterpart booked, or nothing if that never came, and makes a
// counterpart that comes later book nothing.
//
// The confirmations a bank owes are rows that commit with the booking; a [Confirmer] turns them into events
// when they are due, again at least once, under ids that stay the same.
//
// Money is kept in whole cents.
package bank
