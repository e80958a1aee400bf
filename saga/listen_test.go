//go:build !compat

package saga_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

// woken waits until the node's poller is told to look at the table.
func woken(t *testing.T, s *stage) {
	t.Helper()
	select {
	case <-s.signal.C():
	case <-t.Context().Done():
		t.Fatal("nothing woke the other node")
	}
}

func TestP83OtherNodeIsWokenAndListensAgainAfterItsConnectionDied(t *testing.T) {
	address := schematest.URL(t, "postgres")
	prefix := "p83" + strings.ToLower(rand.Text()[:8]) + "_" // other tests listen on the same server
	nodes := make([]*stage, 2)
	for i := range nodes {
		nodes[i] = newStage(t, schematest.Open(t, address, schema.WithNames(schema.Names{Prefix: prefix})), saga.Config{Listen: true})
		defer nodes[i].housekeep()()
	}
	for i := range 3 {
		listeners(t, nodes[0].db, prefix, 2)
		drain(nodes[1])
		nodes[0].begin(fmt.Sprint("one", i), soon)
		woken(t, nodes[1])
		var killed []bool
		require.NoError(t, nodes[0].db.DB.Select(&killed, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%"+prefix+"%'"))
		require.NotEmpty(t, killed)
	}
}

// listeners waits until n connections listen. It asks the database again and again, which takes its time.
func listeners(t *testing.T, db *schema.DB, prefix string, n int) {
	t.Helper()
	for count := -1; count != n; {
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%"+prefix+"%'").Scan(&count))
	}
}

func drain(s *stage) {
	select {
	case <-s.signal.C():
	default:
	}
}
