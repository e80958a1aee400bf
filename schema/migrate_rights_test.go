package schema_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestMigrationWithoutASchemaToCreateInSaysSo(t *testing.T) {
	address, err := url.Parse(schematest.URL(t, "postgres"))
	require.NoError(t, err)
	query := address.Query()
	query.Set("search_path", "nowhere")
	address.RawQuery = query.Encode()
	db := schematest.Connect(t, address.String())
	require.ErrorContains(t, schema.Migrate(t.Context(), db), "no schema of the search_path exists")
	require.ErrorIs(t, schema.Check(t.Context(), db), schema.ErrMissing)
}
