package schema

import (
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
)

// runner runs templates on a pool, a connection or a transaction.
type runner struct {
	db *DB
	on interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}
	// statement is the prepared statement of a text, nil to run the text itself.
	statement func(ctx context.Context, text string) (*sql.Stmt, error)
}

func (r runner) exec(ctx context.Context, query string, args []any) (changed int64, err error) {
	defer func() { err = r.failure(ctx, err) }()
	text, stmt, bound, err := r.ready(ctx, query, args)
	if err != nil {
		return 0, err
	}
	var result sql.Result
	if stmt != nil {
		result, err = stmt.ExecContext(ctx, bound...)
	} else {
		result, err = r.on.ExecContext(ctx, text, bound...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (r runner) get(ctx context.Context, dest any, query string, args []any) (err error) {
	defer func() { err = r.failure(ctx, err) }()
	rows, err := r.query(ctx, query, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if _, scans := dest.(sql.Scanner); !scans && reflect.TypeOf(dest).Elem().Kind() == reflect.Struct {
		return (&sqlx.Rows{Rows: rows, Mapper: mapper}).StructScan(dest)
	}
	return rows.Scan(dest)
}

var mapper = reflectx.NewMapperFunc("db", sqlx.NameMapper)

func (r runner) list(ctx context.Context, dest any, query string, args []any) (err error) {
	defer func() { err = r.failure(ctx, err) }()
	rows, err := r.query(ctx, query, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return sqlx.StructScan(&sqlx.Rows{Rows: rows, Mapper: mapper}, dest)
}

func (r runner) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	text, stmt, bound, err := r.ready(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if stmt != nil {
		return stmt.QueryContext(ctx, bound...)
	}
	return r.on.QueryContext(ctx, text, bound...)
}

func (r runner) ready(ctx context.Context, query string, args []any) (string, *sql.Stmt, []any, error) {
	t, err := r.db.compile(query)
	if err != nil {
		return "", nil, nil, err
	}
	bound, err := r.db.bind(t, args)
	if err != nil {
		return "", nil, nil, err
	}
	if t.once {
		return t.sql, nil, bound, nil
	}
	stmt, err := r.statement(ctx, t.sql)
	return t.sql, stmt, bound, err
}

// failure tells a cancelled statement by its cause, whatever the driver made of it.
func (r runner) failure(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		return errors.Join(context.Cause(ctx), err)
	}
	return r.db.classify(err)
}
