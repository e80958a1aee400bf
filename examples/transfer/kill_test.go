package main_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/schema"
	"github.com/norn-go/norn/schema/schematest"
)

func TestKilledAtAnyMomentTheProgramFinishesTheRest(t *testing.T) {
	const kills = 5
	for _, name := range schematest.Databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			orders := input.Generate(200, seed)
			file, address := written(t, orders), schematest.URL(t, name)
			arguments := []string{"run", "--input", file, "--database", address, "--timeout", "700ms", "--json"}
			for range kills {
				p := launch(t, arguments...)
				for range random.IntN(6) { // how far it may get: five of a hundred transfers a line
					if _, running := p.next(); !running {
						break
					}
				}
				p.signal(os.Kill)
				p.wait()
			}
			last := launch(t, arguments...).summary()
			verify(t, address, orders, last)

			again := launch(t, arguments...).summary()
			verify(t, address, orders, again)
		})
	}
}

func TestInterruptedTheProgramStopsCleanlyAndGoesOnLater(t *testing.T) {
	for _, name := range schematest.Databases {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(name+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				orders := input.Generate(100, 11)
				file, address := written(t, orders), schematest.URL(t, name)
				arguments := []string{"run", "--input", file, "--database", address, "--timeout", "700ms", "--json"}
				p := launch(t, arguments...)
				require.True(t, p.until(func(line string) bool { return strings.Contains(line, "ended") }), "%v", p.said)
				p.signal(signal)
				require.Equal(t, 130, p.wait(), "%v", p.said)
				require.Contains(t, p.said[len(p.said)-1], "run it again with the same database and input to go on")
				require.Zero(t, p.out.Len(), "no summary of half the work")

				db := schematest.Open(t, address)
				var held int
				require.NoError(t, db.Get(t.Context(), &held, "SELECT count(*) FROM {deadline_lock} WHERE expires_at > {now}"))
				require.Zero(t, held, "no lease is left behind")
				verify(t, address, orders, launch(t, arguments...).summary())
			})
		}
	}
}

func TestTwoProcessesOnOnePostgresSurviveTheKillOfTheLeaseHolder(t *testing.T) {
	t.Parallel()
	orders := input.Generate(400, 21)
	for i := range orders { // every transfer ends by a deadline
		orders[i].Debit = input.Delay{Never: true}
	}
	file, address := written(t, orders), schematest.URL(t, "postgres")
	db := schematest.Open(t, address)
	arguments := []string{"run", "--input", file, "--database", address, "--timeout", "3s", "--json"}
	nodes := []*process{launch(t, arguments...), launch(t, arguments...)}

	holder := sweeping(t, db, len(orders), nodes)
	holder.signal(os.Kill)
	require.Equal(t, -1, holder.wait())
	var left int
	require.NoError(t, db.Get(t.Context(), &left, "SELECT count(*) FROM {deadline} WHERE due_at <= {now}"))
	require.Positive(t, left, "it was killed in the middle of a sweep")

	for _, p := range nodes {
		if p != holder {
			verify(t, address, orders, p.summary())
		}
	}
}

// sweeping waits until some of all deadlines have fired and returns the process that sweeps.
func sweeping(t *testing.T, db *schema.DB, all int, nodes []*process) *process {
	t.Helper()
	for armed, ended := 0, 0; ended == 0 || armed == all; {
		armed = deadlines(t, db)
		require.NoError(t, db.Get(t.Context(), &ended, "SELECT count(*) FROM {instance} WHERE status = 'ended'"))
		for _, p := range nodes {
			require.NoError(t, p.command.Process.Signal(syscall.Signal(0)), "%v", p.said)
		}
	}
	var holder string
	require.NoError(t, db.Get(t.Context(), &holder, "SELECT holder FROM {deadline_lock} WHERE name NOT LIKE '%/relay' AND expires_at > {now}"))
	for _, p := range nodes {
		if strings.Contains("-"+holder+"-", "-"+strconv.Itoa(p.command.Process.Pid)+"-") {
			return p
		}
	}
	t.Fatalf("no process of this test is holder %s", holder)
	return nil
}

func TestTwoProcessesOnOnePostgresShareTheWorkAndBothFinish(t *testing.T) {
	t.Parallel()
	orders := input.Generate(200, 31)
	file, address := written(t, orders), schematest.URL(t, "postgres")
	arguments := []string{"run", "--input", file, "--database", address, "--timeout", "1s", "--json"}
	first, second := launch(t, arguments...), launch(t, arguments...)
	verify(t, address, orders, first.summary())
	verify(t, address, orders, second.summary())
}
