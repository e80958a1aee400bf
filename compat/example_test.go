package compat_test

import "database/sql"

func openPgx(url string) (*sql.DB, error) { // with import _ "github.com/jackc/pgx/v5/stdlib"
	pool, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(32)
	pool.SetMaxIdleConns(32)
	return pool, nil
}

func openModernc(file string) (*sql.DB, error) { // with import _ "modernc.org/sqlite"
	pool, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)"+
		"&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(on)")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(4)
	pool.SetMaxIdleConns(4)
	return pool, nil
}
