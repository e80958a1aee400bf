// Package fxmodule wires norn into an fx application: [Module] reads the settings, opens the database, brings the
// tables up to date and runs engine, relay and poller; [Saga] and [CommandHandler] register what they run.
//
// What is wrong is told before anything runs: mistakes in settings, definitions and command handlers come in one error,
// and so do the services that handlers want and nothing provides. When a part of the application fails to start, nothing
// of norn's goes on running and no lease stays held; an application that fx.New refuses may leave an idle pool behind.
//
// # Order
//
// Start: the tables, the engine, the relay, the poller. Stop: the poller, the relay, the engine, and last the database.
// No new work begins once the stop has, running work may finish, leases are given back. Each part has a share of fx's
// stop timeout; one that uses it up is left behind, so that the database is closed in any case. That also happens when
// a start runs out of time or is cancelled, after which fx calls no stop hook.
//
// Put Module last among the application's options: fx starts in order and stops in reverse, so work then begins when
// everything else runs, and ends before a slow neighbour can use up the time to stop.
//
// # What can be injected
//
// *[saga.Engine], *[schema.DB] (norn's database, whoever opened it), *[config.Source] and [config.Config], and
// *[poller.Poller] and *[outbox.Relay] to sweep and flush by hand. An application, once stopped, is not started again:
// make a new one.
package fxmodule
