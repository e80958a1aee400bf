package schema

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
)

type sqlite struct{}

func (sqlite) name() string             { return "sqlite" }
func (sqlite) quote(name string) string { return `"` + name + `"` }
func (sqlite) lock() string             { return "" }
func (sqlite) cast(string) string       { return "?" }
func (sqlite) timeArg(t time.Time) any  { return t.UnixMicro() }

func (sqlite) rows(columns []column) string {
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = fmt.Sprintf("json_extract(value, '$[%d]') AS %s", i, c.name)
	}
	return "(SELECT " + strings.Join(fields, ", ") + ", key + 1 AS ord FROM json_each(?)) AS r"
}

func (sqlite) rowArgs(_ []column, rows Rows) ([]any, error) {
	plain := make([][]any, len(rows))
	for i, row := range rows {
		plain[i] = make([]any, len(row))
		for j, value := range row {
			switch v := value.(type) {
			case time.Time:
				plain[i][j] = v.UnixMicro()
			case sql.NullString:
				if v.Valid {
					plain[i][j] = v.String
				}
			default:
				plain[i][j] = v
			}
		}
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("schema: rows: %w", err)
	}
	return []any{string(text)}, nil
}

// busy reports whether another connection had the file, or a table in it, locked.
func busy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}

func (sqlite) classify(err error) error {
	var e sqlite3.Error
	switch {
	case !errors.As(err, &e):
		return err
	case busy(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case e.ExtendedCode == sqlite3.ErrConstraintUnique, e.ExtendedCode == sqlite3.ErrConstraintPrimaryKey:
		return &DuplicateError{Constraint: e.Error(), Err: err}
	}
	return err
}
