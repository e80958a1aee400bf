// Package config reads norn's settings, and the application's own, from one YAML file and the environment.
// What it returns is complete and checked: every mistake is reported in one error, each with its key, where the
// value came from, what was found and what is wanted.
//
// # Precedence
//
// An [Override] given by the program beats the environment, the environment beats the file, the file beats the default.
// The environment variable of a key is the key in upper case, with dots and dashes as underscores:
// saga.deadline.lease-ttl is SAGA_DEADLINE_LEASE_TTL. Every key has one, whether the file mentions the key or not. An
// empty environment variable counts as unset, for every key.
//
// # Strictness
//
// Keys are matched ignoring case, and a key written twice in different spellings is refused. Unknown keys under "saga."
// and "database." are refused with the nearest known one; other sections belong to the application and are left alone until
// a [Section] reads them. A value must be of the right kind: no quoted numbers in the file, no "yes" for true,
// no duration without a unit.
//
// The keys of norn are listed by [Keys]; docs/configuration.md shows the same table.
package config
