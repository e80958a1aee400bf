package schema

import "time"

// dialect is what the two databases say differently.
type dialect interface {
	name() string
	quote(identifier string) string
	lock() string
	cast(kind string) string
	timeArg(t time.Time) any
	rows(columns []column) string
	rowArgs(columns []column, rows Rows) ([]any, error)
	classify(err error) error
}
