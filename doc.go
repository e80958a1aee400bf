// Package norn is the root of a saga framework on database/sql. A saga is a Go struct whose handlers are called when an
// event concerns one of its instances or when one of its deadlines falls due. What a handler changes, the commands it
// sends and the deadlines it sets are committed in one SQL transaction, on SQLite or Postgres: after a crash either all
// of it is there or nothing. Commands are delivered after the commit, at least once and in order per saga; due deadlines
// are swept by one node at a time, and each fires once however many nodes believe they lead. Sagas are defined with
// package saga and usually wired with package fxmodule, which joins the other packages (schema, deadline, lease,
// poller, outbox, config); everything works without fx too. This package itself holds no code.
package norn
