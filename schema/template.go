package schema

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// Rows is an argument that stands for a whole table: its columns are declared at the token
// {rows name type, …}, with the types text, int, bool and time. A column "ord" numbers the rows from 1.
type Rows [][]any

// Column is a table of one column.
func Column(values []string) Rows {
	rows := make(Rows, len(values))
	for i, v := range values {
		rows[i] = []any{v}
	}
	return rows
}

// column is one column of a {rows …} token.
type column struct{ name, kind string }

// step says what becomes of the next argument of a statement.
type step struct {
	kind    stepKind
	columns []column
}

type stepKind int

const (
	takeArg stepKind = iota
	takeRows
	insertNow
	takeDuration
)

// template is a statement with its tokens replaced, ready for any arguments.
type template struct {
	sql   string
	steps []step
	once  bool // never prepared
}

var token = regexp.MustCompile(`\{[^}]*\}|\?`)

func (d *DB) compile(query string) (*template, error) {
	if t, ok := d.templates.Load(query); ok {
		return t.(*template), nil
	}
	t := &template{}
	var failed error
	text := token.ReplaceAllStringFunc(query, func(tok string) string {
		if tok == "{unprepared}" {
			t.once = true
			return ""
		}
		text, steps, err := d.expand(tok)
		if err != nil {
			failed = fmt.Errorf("schema: statement %q: %w", query, err)
		}
		t.steps = append(t.steps, steps...)
		return text
	})
	if failed != nil {
		return nil, failed
	}
	t.sql = sqlx.Rebind(sqlx.BindType(d.DriverName()), text)
	d.templates.Store(query, t)
	return t, nil
}

func (d *DB) expand(tok string) (string, []step, error) {
	word := strings.Trim(tok, "{}")
	switch {
	case tok == "?":
		return "?", []step{{kind: takeArg}}, nil
	case word == "now":
		if d.processClock {
			return d.dialect.cast("time"), []step{{kind: insertNow}}, nil
		}
		return postgresNow, nil, nil
	case word == "now+":
		if d.processClock {
			return d.dialect.cast("time"), []step{{kind: takeDuration}}, nil
		}
		return postgresLater, []step{{kind: takeArg}}, nil
	case word == "lock":
		return d.dialect.lock(), nil, nil
	case strings.HasPrefix(word, "rows "):
		columns, err := parseColumns(strings.TrimPrefix(word, "rows "))
		if err != nil {
			return "", nil, err
		}
		return d.dialect.rows(columns), []step{{kind: takeRows, columns: columns}}, nil
	}
	table, suffix, _ := strings.Cut(word, ":")
	name, ok := d.names.byToken()[table]
	if !ok {
		return "", nil, fmt.Errorf("unknown token %s", tok)
	}
	if suffix != "" {
		return d.dialect.quote(*name + "_" + suffix), nil, nil
	}
	return d.dialect.quote(*name), nil, nil
}

func parseColumns(list string) ([]column, error) {
	var columns []column
	for part := range strings.SplitSeq(list, ",") {
		name, kind, ok := strings.Cut(strings.TrimSpace(part), " ")
		if !ok {
			return nil, fmt.Errorf("column %q: want a name and a type", part)
		}
		columns = append(columns, column{name, strings.TrimSpace(kind)})
	}
	return columns, nil
}

// bind lays args out as t's statement wants them.
func (d *DB) bind(t *template, args []any) ([]any, error) {
	var out []any
	next := 0
	take := func() (any, error) {
		if next == len(args) {
			return nil, fmt.Errorf("schema: %d arguments are too few for %q", len(args), t.sql)
		}
		next++
		return args[next-1], nil
	}
	for _, s := range t.steps {
		if s.kind == insertNow {
			out = append(out, d.dialect.timeArg(time.Now()))
			continue
		}
		arg, err := take()
		if err != nil {
			return nil, err
		}
		switch s.kind {
		case takeRows:
			bound, err := d.dialect.rowArgs(s.columns, arg.(Rows))
			if err != nil {
				return nil, err
			}
			out = append(out, bound...)
		case takeDuration:
			out = append(out, d.dialect.timeArg(time.Now().Add(arg.(time.Duration))))
		default:
			out = append(out, d.argument(arg))
		}
	}
	if next != len(args) {
		return nil, fmt.Errorf("schema: %d arguments are too many for %q", len(args), t.sql)
	}
	return out, nil
}

func (d *DB) argument(arg any) any {
	switch v := arg.(type) {
	case time.Time:
		return d.dialect.timeArg(v)
	case Time:
		if v.IsZero() {
			return nil
		}
		return d.dialect.timeArg(v.Time)
	case time.Duration:
		return v.Microseconds()
	}
	return arg
}
