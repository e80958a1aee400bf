package main_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/lease"
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
	arguments := []string{"run", "--input", file, "--database", address, "--timeout", "1s", "--json"}
	var nodes []*process
	err := lease.New(db, leaseName, lease.Config{}).Hold(t.Context(), func(context.Context) error {
		nodes = []*process{launch(t, arguments...), launch(t, arguments...)}
		for due(t, db) < len(orders) {
			requireRunning(t, nodes)
		}
		return nil
	})
	require.NoError(t, err)

	holder := sweeping(t, db, nodes)
	holder.signal(os.Kill)
	require.Equal(t, -1, holder.wait())
	require.Positive(t, due(t, db), "it was killed in the middle of a sweep")

	for _, p := range nodes {
		if p != holder {
			verify(t, address, orders, p.summary())
		}
	}
}

func due(t *testing.T, db *schema.DB) (n int) {
	t.Helper()
	require.NoError(t, db.Get(t.Context(), &n, "SELECT count(*) FROM {deadline} WHERE due_at <= {now}"))
	return n
}

// requireRunning fails the test when a process has closed its standard error, which ends with it.
func requireRunning(t *testing.T, nodes []*process) {
	t.Helper()
	for _, p := range nodes {
		select {
		case line, running := <-p.lines:
			p.said = append(p.said, line)
			require.True(t, running, "%v", p.said)
		default:
		}
	}
}

// sweeping waits until a deadline has fired and returns the process that sweeps.
func sweeping(t *testing.T, db *schema.DB, nodes []*process) *process {
	t.Helper()
	for ended := 0; ended == 0; {
		requireRunning(t, nodes)
		require.NoError(t, db.Get(t.Context(), &ended, "SELECT count(*) FROM {instance} WHERE status = 'ended'"))
	}
	var holder string
	require.NoError(t, db.Get(t.Context(), &holder, "SELECT holder FROM {deadline_lock} WHERE name = ?", leaseName))
	for _, p := range nodes {
		if strings.Contains(holder, "-"+strconv.Itoa(p.command.Process.Pid)+"-") {
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
