package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"
)

type postgres struct{}

// The database's clock, now and so many microseconds later. On SQLite the process has the clock.
const (
	postgresNow   = "clock_timestamp()"
	postgresLater = "(clock_timestamp() + CAST(? AS bigint) * interval '1 microsecond')"
)

func (postgres) name() string             { return "postgres" }
func (postgres) quote(name string) string { return `"` + strings.ToLower(name) + `"` }
func (postgres) lock() string             { return "FOR UPDATE" }
func (postgres) cast(kind string) string  { return "CAST(? AS " + postgresTypes[kind] + ")" }

var postgresTypes = map[string]string{"text": "text", "int": "bigint", "bool": "boolean", "time": "timestamptz"}

// timeArg is text, so that no driver sees the process's own time zone.
func (postgres) timeArg(t time.Time) any { return postgresTime(t) }

func postgresTime(t time.Time) string {
	return Microseconds(t).Format("2006-01-02 15:04:05.999999+00")
}

func (postgres) rows(columns []column) string {
	names, params := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], params[i] = c.name, "CAST(? AS "+postgresTypes[c.kind]+"[])"
	}
	return "unnest(" + strings.Join(params, ", ") + ") WITH ORDINALITY AS r (" + strings.Join(names, ", ") + ", ord)"
}

func (postgres) rowArgs(columns []column, rows Rows) ([]any, error) {
	args := make([]any, len(columns))
	for i, c := range columns {
		values := make([]sql.NullString, len(rows))
		for j, row := range rows {
			text, err := postgresText(c.kind, row[i])
			if err != nil {
				return nil, fmt.Errorf("schema: column %s: %w", c.name, err)
			}
			values[j] = text
		}
		text, err := pq.Array(values).Value() // as text, which every driver passes on as it is
		if err != nil {
			return nil, fmt.Errorf("schema: column %s: %w", c.name, err)
		}
		args[i] = text
	}
	return args, nil
}

func postgresText(kind string, value any) (sql.NullString, error) {
	switch v := value.(type) {
	case nil:
		return sql.NullString{}, nil
	case sql.NullString:
		return v, nil
	case string:
		return sql.NullString{String: v, Valid: true}, nil
	case time.Time:
		return sql.NullString{String: postgresTime(v), Valid: true}, nil
	case int, int64, bool:
		return sql.NullString{String: fmt.Sprint(v), Valid: true}, nil
	}
	return sql.NullString{}, fmt.Errorf("no %s can be made of a %T", kind, value)
}

// classify knows the conditions of Postgres by their SQLSTATE; the classes are those of its manual,
// appendix A.
func (postgres) classify(err error) error {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return err
	}
	switch code := state.SQLState(); {
	case code == "40001", code == "40P01", code == "55P03", code == "0A000" && strings.Contains(err.Error(), "cached plan"):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case code == "23505":
		constraint := err.Error()
		var detail *pq.Error
		if errors.As(err, &detail) {
			constraint = detail.Constraint
		}
		return &DuplicateError{Constraint: constraint, Err: err}
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == "53300", code == "25006": // 25006: a standby
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
