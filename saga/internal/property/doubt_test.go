package property

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDoubtNamesWhatAnEventCannotHave(t *testing.T) {
	for path, want := range map[string]string{
		"orderId": "", "plain": "", "any/thing": "", "inner/deep/x": "", "list/lines": "", "inner": "",
		"orderid":          `property.event has no "orderid", only metadata could have it; did you mean "orderId"?`,
		"ordrId":           `property.event has no "ordrId", only metadata could have it; did you mean "orderId"?`,
		"plaim":            `property.event has no "plaim", only metadata could have it; did you mean "Plain"?`,
		"tenant":           `property.event has no "tenant", only metadata could have it`,
		"hidden":           `property.event has no "hidden", only metadata could have it`,
		"list/line":        `property.inner has no "line", only metadata could have it; did you mean "Lines"?`,
		"plain/deeper":     `int has no "deeper", only metadata could have it`,
		"inner/deep/x/end": `int has no "end", only metadata could have it`,
	} {
		require.Equal(t, want, Doubt(reflect.TypeFor[*event](), path), path)
	}
}
