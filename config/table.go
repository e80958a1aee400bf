package config

import "strings"

// Schema configures norn's tables.
type Schema struct {
	// Auto creates and migrates the tables at start; false: refuse to start when they are missing.
	Auto bool
	// TablePrefix is put before every default table name.
	TablePrefix string
	// Tables holds names given one by one, taken as written; an empty one stands for the prefix and the default name.
	Tables Tables
}

// Tables holds one name per table of norn.
type Tables struct {
	Instance, Association, Deadline, DeadlineLock, Command, Event, History string
}

// Names returns the names in use: those of s.Tables, and the prefix with the default name where none is given.
func (s Schema) Names() Tables {
	names := s.Tables
	for _, t := range tables {
		if name := t.field(&names); *name == "" {
			*name = s.TablePrefix + t.standard
		}
	}
	return names
}

type table struct {
	name, standard string
	field          func(*Tables) *string
}

var tables = []table{
	{"instance", "SAGA_INSTANCE", func(t *Tables) *string { return &t.Instance }},
	{"association", "SAGA_ASSOCIATION", func(t *Tables) *string { return &t.Association }},
	{"deadline", "SAGA_DEADLINE", func(t *Tables) *string { return &t.Deadline }},
	{"deadline-lock", "SAGA_DEADLINE_LOCK", func(t *Tables) *string { return &t.DeadlineLock }},
	{"command", "SAGA_COMMAND", func(t *Tables) *string { return &t.Command }},
	{"event", "SAGA_EVENT", func(t *Tables) *string { return &t.Event }},
	{"history", "SAGA_HISTORY", func(t *Tables) *string { return &t.History }},
}

func (t table) key() string { return "saga.schema.tables." + t.name }

func (t table) setting() setting {
	s := define(t.key(), "", func(c *Config) *string { return t.field(&c.Schema.Tables) },
		plainName, "name of the "+strings.ReplaceAll(t.name, "-", " ")+" table, taken as written, without the prefix")
	s.Default = t.standard
	s.show = func(c Config) string {
		names := c.Schema.Names()
		return *t.field(&names)
	}
	return s
}

// longestTable leaves room for the suffixes of index names within the 63 bytes of a Postgres identifier.
const longestTable = 40

var plainName = limit[string]{
	says:  "a plain identifier (letters, digits, underscores, no digit first) of at most 40 bytes",
	holds: func(name string) bool { return name == "" || plain(name) && len(name) <= longestTable },
}

func plain(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
