package saga_test

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/norn-go/norn/schema/schematest"
)

// modelTime bounds each database's part of a run, unless -rapid.checks asks for more.
const modelTime = 10 * time.Second

// The engine on real tables, cut, killed, overtaken and run twice, stores what a model in memory says.
func TestEngineStoresWhatItsModelSays(t *testing.T) {
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, name)
			end := time.Now().Add(modelTime)
			for round := 0; round == 0 || !checksGiven() && time.Now().Before(end); round++ {
				rapid.Check(t, func(r *rapid.T) {
					script := drawScript(r)
					if !checksGiven() && time.Now().After(end) {
						return
					}
					if err := inBubble(t, at, script); err != nil {
						r.Fatal(err)
					}
				})
			}
		})
	}
}

// newPlace makes tables for many scripts, one after the other.
func newPlace(t *testing.T, database string) (p place) {
	address := schematest.URL(t, database)
	schematest.Open(t, address)
	p.driver, p.name, p.dsn = schematest.Driver(t, address)
	return p
}

// inBubble plays the script in a bubble of its own and hands the failure out, so that the script can shrink.
func inBubble(t *testing.T, at place, script []step) (err error) {
	definition := story(t, "story")
	synctest.Test(t, func(*testing.T) { err = play(at, definition, script) })
	return err
}

func checksGiven() (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	return given
}
