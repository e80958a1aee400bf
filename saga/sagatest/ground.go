package sagatest

import (
	"fmt"
	"testing"

	"github.com/norn-go/norn/saga/internal/knife"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// ground is a place that the runs of a scenario use one after the other.
type ground struct {
	t        testing.TB
	database Database
	db       *schema.DB
	stock    *knife.Stock
	ahead    int             // connections that the stock opens ahead
	name     string          // of the driver
	kept     map[string]bool // whether a table is cleared by hand: those of norn, but for what migrating put there
}

func newGround(t testing.TB, database Database) *ground {
	t.Helper()
	address := schematest.URL(t, string(database))
	g := &ground{t: t, database: database, db: schematest.Open(t, address), kept: map[string]bool{}}
	own, name, dsn := schematest.Driver(t, address)
	g.stock, g.name = knife.NewStock(own, dsn, "DISCARD ALL"), name
	if name == "postgres" { // other drivers remember what they prepared, or need no server
		g.ahead = 6
	}
	t.Cleanup(g.stock.Close)
	for _, r := range g.relations() {
		var rows int
		if err := g.db.DB.Get(&rows, "SELECT count(*) FROM "+quoted(r.Name)); err != nil {
			t.Fatalf("sagatest: %v", err)
		}
		g.kept[r.Name] = rows == 0
	}
	return g
}

type relation struct{ Kind, Name string }

func quoted(name string) string { return `"` + name + `"` }

var catalogue = map[Database]string{
	SQLite:   "SELECT upper(type) AS kind, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY type DESC",
	Postgres: "SELECT CASE table_type WHEN 'VIEW' THEN 'VIEW' ELSE 'TABLE' END AS kind, table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY kind DESC",
}

var cascade = map[Database]string{Postgres: " CASCADE"}

func (g *ground) relations() (all []relation) {
	g.t.Helper()
	if err := g.db.DB.Select(&all, catalogue[g.database]); err != nil {
		g.t.Fatalf("sagatest: list the tables: %v", err)
	}
	return all
}

// clear makes ready for the next run: it empties norn's tables and drops the application's.
func (g *ground) clear() {
	g.t.Helper()
	if err := g.stock.Fill(g.ahead); err != nil { // outside the bubbles of runs, for a connection is of one bubble or of none
		g.t.Fatalf("sagatest: connect: %v", err)
	}
	for _, r := range g.relations() {
		clears, norns := g.kept[r.Name]
		statement := fmt.Sprintf("DROP %s IF EXISTS %s%s", r.Kind, quoted(r.Name), cascade[g.database])
		switch {
		case norns && !clears:
			continue
		case norns:
			statement = "DELETE FROM " + quoted(r.Name)
		}
		if _, err := g.db.DB.Exec(statement); err != nil {
			g.t.Fatalf("sagatest: %s: %v", statement, err)
		}
	}
}
