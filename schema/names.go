package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Names are the names of norn's tables. The zero value stands for the defaults of an empty prefix.
type Names struct {
	// Prefix is put before every default name, not before a name given below.
	Prefix string
	// A name given here is taken as it is written.
	Instance, Association, Deadline, DeadlineLock, Command, Event, History string
}

var plainIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// longestName leaves room for the longest index suffix within Postgres' 63 bytes.
const longestName = 40

// resolved returns n with every empty name replaced by its default.
func (n Names) resolved() Names {
	for table, name := range n.byToken() {
		if *name == "" {
			*name = n.Prefix + defaultNames[table]
		}
	}
	return n
}

var defaultNames = map[string]string{
	"instance":      "SAGA_INSTANCE",
	"association":   "SAGA_ASSOCIATION",
	"deadline":      "SAGA_DEADLINE",
	"deadline_lock": "SAGA_DEADLINE_LOCK",
	"command":       "SAGA_COMMAND",
	"event":         "SAGA_EVENT",
	"history":       "SAGA_HISTORY",
}

func (n *Names) byToken() map[string]*string {
	return map[string]*string{
		"instance":      &n.Instance,
		"association":   &n.Association,
		"deadline":      &n.Deadline,
		"deadline_lock": &n.DeadlineLock,
		"command":       &n.Command,
		"event":         &n.Event,
		"history":       &n.History,
	}
}

// Validate reports every name that is no plain identifier, too long, or used twice ignoring case.
func (n Names) Validate() error {
	var errs []error
	if n.Prefix != "" && !plainIdentifier.MatchString(n.Prefix) {
		errs = append(errs, fmt.Errorf("schema: table prefix %q: want letters, digits and underscores", n.Prefix))
	}
	r := n.resolved()
	seen := map[string]string{strings.ToLower(r.versionTable()): "version"}
	for _, table := range tables {
		name := *r.byToken()[table]
		switch {
		case !plainIdentifier.MatchString(name):
			errs = append(errs, fmt.Errorf("schema: table name %q of %s: want letters, digits and underscores", name, table))
		case len(name) > longestName:
			errs = append(errs, fmt.Errorf("schema: table name %q of %s: longer than %d bytes", name, table, longestName))
		}
		if other, taken := seen[strings.ToLower(name)]; taken {
			errs = append(errs, fmt.Errorf("schema: table name %q of %s is the name of %s too", name, table, other))
		}
		seen[strings.ToLower(name)] = table
	}
	return errors.Join(errs...)
}

var tables = []string{"instance", "association", "deadline", "deadline_lock", "command", "event", "history"}

// versionTable is where goose records which migrations were applied.
func (n Names) versionTable() string { return strings.ToLower(n.Prefix) + "norn_schema_version" }
