package sagatest

import (
	"testing"

	"go.uber.org/fx"

	"github.com/norn-go/norn/fxmodule"
)

// Check fails the test if an fx application of these options could not start, by fxmodule.Check: settings, saga types,
// command handlers, services. It starts nothing and opens no database, and it fits any database and both kinds of tests,
// those of a module (with fx.Supply or fx.Provide of what the module expects from others) and those of the whole
// application.
func Check(t testing.TB, opts ...fx.Option) {
	t.Helper()
	if err := fxmodule.Check(opts...); err != nil {
		t.Errorf("sagatest: the application could not start:\n%v", err)
	}
}
