package schema

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
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

// SQLite's result codes, https://www.sqlite.org/rescode.html; the low byte is the kind.
const (
	codeBusy       = 5
	codeLocked     = 6
	codePrimaryKey = 19 | 6<<8
	codeUnique     = 19 | 8<<8
)

// sqliteCode is the extended result code that an error tells, 0 if it is none of SQLite's.
func sqliteCode(err error) int {
	var told interface {
		error
		Code() int
	}
	if errors.As(err, &told) {
		return told.Code()
	}
	return codeInField(err)
}

// busy reports whether another connection had the file, or a table in it, locked.
func busy(err error) bool {
	kind := sqliteCode(err) & 0xff
	return kind == codeBusy || kind == codeLocked
}

func (sqlite) classify(err error) error {
	switch code := sqliteCode(err); {
	case busy(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case code == codeUnique, code == codePrimaryKey:
		return &DuplicateError{Constraint: err.Error(), Err: err}
	}
	return err
}
