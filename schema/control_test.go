package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTransactionControlIsToldFromWhatOnlyLooksLikeIt(t *testing.T) {
	for query, want := range map[string]string{
		"COMMIT":                               "COMMIT",
		" commit ; ":                           "COMMIT",
		"Rollback":                             "ROLLBACK",
		"ROLLBACK WORK":                        "ROLLBACK",
		"rollback; begin":                      "ROLLBACK",
		"END TRANSACTION":                      "END",
		"ABORT":                                "ABORT",
		"BEGIN IMMEDIATE":                      "BEGIN",
		"START TRANSACTION":                    "START",
		"PREPARE TRANSACTION 'x'":              "PREPARE",
		"/* a */ -- b\n COMMIT":                "COMMIT",
		"UPDATE t SET a = 1; COMMIT":           "COMMIT",
		"SELECT 'it''s'; ROLLBACK":             "ROLLBACK",
		"ROLLBACK TO SAVEPOINT a; COMMIT":      "COMMIT",
		"":                                     "",
		"ROLLBACK TO a":                        "",
		"ROLLBACK TRANSACTION TO SAVEPOINT a":  "",
		"SAVEPOINT a":                          "",
		"RELEASE a":                            "",
		"SELECT CASE WHEN a THEN 1 END FROM t": "",
		"INSERT INTO t VALUES ('; COMMIT')":    "",
		`SELECT 1 AS "; ROLLBACK"`:             "",
		`SELECT E'it\'s; COMMIT; '`:            "",
		"SELECT $a$; COMMIT; $a$":              "",
		"DELETE FROM t WHERE id = $1 -- ; END": "",
		"INSERT INTO t VALUES (1) ON CONFLICT ROLLBACK":           "",
		"CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END;": "",
		"SELECT commit FROM begin":                                "",
	} {
		require.Equal(t, want, transactionControl(query), query)
	}
}
