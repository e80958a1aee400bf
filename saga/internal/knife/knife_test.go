package knife_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga/internal/knife"
	"github.com/norn-go/norn/schema/schematest"
)

// bench is a pool under a knife, on a table with one column, and another pool that looks on.
type bench struct {
	*testing.T
	knife *knife.Knife
	pool  *sql.DB
	eye   *sql.DB
	died  int
}

func each(t *testing.T, body func(b *bench)) {
	for _, name := range schematest.Databases {
		for _, ahead := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, %d ahead", name, ahead), func(t *testing.T) {
				address := schematest.URL(t, name)
				b := &bench{T: t, eye: schematest.Connect(t, address).DB.DB}
				b.must(b.eye.Exec("CREATE TABLE line (text text)"))
				d, _, dsn := schematest.Driver(t, address)
				stock := knife.NewStock(d, dsn, map[string]string{"sqlite": "SELECT 1", "postgres": "DISCARD ALL"}[name])
				require.NoError(t, stock.Fill(ahead))
				b.knife = knife.New(knife.ErrCut, func() { b.died++ })
				b.pool = knife.Open(stock, b.knife)
				b.knife.Watch(true)
				t.Cleanup(func() {
					require.NoError(t, b.pool.Close())
					stock.Close()
				})
				body(b)
			})
		}
	}
}

func (b *bench) must(_ any, err error) {
	b.Helper()
	require.NoError(b, err)
}

func (b *bench) lines() (n int) {
	b.Helper()
	require.NoError(b, b.eye.QueryRow("SELECT count(*) FROM line").Scan(&n))
	return n
}

// write is three statements.
func (b *bench) write() error {
	tx, err := b.pool.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("INSERT INTO line (text) VALUES ('a')"); err != nil {
		return err
	}
	return tx.Commit()
}

func TestOnlyTheChosenStatementIsCut(t *testing.T) {
	each(t, func(b *bench) {
		for at := 1; at <= 3; at++ {
			for _, after := range []bool{false, true} {
				before := b.lines()
				b.knife.Arm(knife.Fault{At: at, After: after})
				require.ErrorIs(b, b.write(), knife.ErrCut)
				_, hit := b.knife.Met()
				require.True(b, hit)
				stored := 0
				if at == 3 && after {
					stored = 1
				}
				require.Equal(b, before+stored, b.lines(), "statement %d, after %t", at, after)
				require.NoError(b, b.write(), "the next one")
			}
		}
		b.knife.Arm(knife.Fault{At: 4})
		require.NoError(b, b.write())
		require.Equal(b, 3, b.knife.Count())
		_, hit := b.knife.Met()
		require.False(b, hit)
		require.Zero(b, b.died)
	})
}

func TestStatementWhoseRowsAreLostWasRun(t *testing.T) {
	each(t, func(b *bench) {
		b.knife.Arm(knife.Fault{At: 1, After: true})
		var text string
		require.ErrorIs(b, b.pool.QueryRow("INSERT INTO line (text) VALUES ('a') RETURNING text").Scan(&text), knife.ErrCut)
		require.Equal(b, 1, b.lines())
	})
}

func TestPreparedStatementsAreCutWhenTheyRun(t *testing.T) {
	each(t, func(b *bench) {
		b.knife.Arm(knife.Fault{At: 2})
		stmt, err := b.pool.Prepare("INSERT INTO line (text) VALUES ('a')")
		require.NoError(b, err)
		defer func() { require.NoError(b, stmt.Close()) }()
		b.must(stmt.Exec())
		_, err = stmt.Exec()
		require.ErrorIs(b, err, knife.ErrCut)
		require.Equal(b, 1, b.lines())
	})
}

func TestDeadProcessRunsNothingUntilAnotherBegins(t *testing.T) {
	each(t, func(b *bench) {
		b.knife.Arm(knife.Fault{At: 3, Die: true})
		require.ErrorIs(b, b.write(), knife.ErrCut)
		require.Equal(b, 1, b.died)
		statement, _ := b.knife.Met()
		require.Equal(b, "COMMIT", statement)
		require.ErrorIs(b, b.write(), knife.ErrCut)
		b.knife.Watch(false)
		require.ErrorIs(b, b.write(), knife.ErrCut)
		var n int
		require.NoError(b, b.pool.QueryRowContext(knife.Spared(b.Context()), "SELECT count(*) FROM line").Scan(&n))
		require.Zero(b, n)
		b.knife.Revive()
		_, err := b.pool.Exec("SELECT 1")
		require.ErrorIs(b, err, knife.ErrCut, "a connection of the dead process")
		require.NoError(b, b.write())
		require.Equal(b, 1, b.lines())
	})
}

func TestStatementsAreNotCountedUnlessWatched(t *testing.T) {
	each(t, func(b *bench) {
		b.knife.Arm(knife.Fault{At: 1})
		b.knife.Watch(false)
		require.NoError(b, b.write())
		b.knife.Watch(true)
		require.ErrorIs(b, b.write(), knife.ErrCut)
		require.Equal(b, 1, b.knife.Count())
	})
}
