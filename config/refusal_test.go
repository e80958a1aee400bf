package config_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
)

func TestP76BareNumberDurationIsRefused(t *testing.T) {
	for _, key := range config.Keys() {
		if !strings.HasPrefix(key.Kind, "duration") {
			continue
		}
		for _, number := range []string{"30", "'30'", "0", "30.5", "-1", "1e9", "99999999999999999999"} {
			_, err := norn(t, key.Name+": "+number)
			require.ErrorContains(t, err, "config: "+key.Name+" (", number)
			require.ErrorContains(t, err, "it needs a unit, for example 30s", number)
		}
		t.Run(key.Env, func(t *testing.T) {
			t.Setenv(key.Env, "30")
			_, err := without(t).Norn()
			require.EqualError(t, err, "config: "+key.Name+" ("+key.Env+"): got \"30\", want "+key.Kind+": it needs a unit, for example 30s")
		})
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ key, value, got string }{
		{"saga.deadline.polling.interval", "0s", "0s"},
		{"saga.deadline.polling.interval", "-1s", "-1s"},
		{"saga.deadline.polling.interval", "soon", `"soon"`},
		{"saga.deadline.polling.interval", "7d", `"7d"`},
		{"saga.deadline.polling.interval", "9999999999h", `"9999999999h"`},
		{"saga.deadline.polling.interval", "2026-01-01", "the date 2026-01-01T00:00:00Z"},
		{"saga.deadline.polling.interval", "true", "true"},
		{"saga.deadline.polling.interval", "[30s]", "a list"},
		{"saga.deadline.polling.interval", "{seconds: 30}", "a map"},
		{"saga.deadline.polling.interval", "", "nothing"},
		{"saga.deadline.polling.batch-size", "0", "0"},
		{"saga.deadline.polling.batch-size", "-1", "-1"},
		{"saga.deadline.polling.batch-size", "65537", "65537"},
		{"saga.deadline.polling.batch-size", "'100'", `"100"`},
		{"saga.deadline.polling.batch-size", "many", `"many"`},
		{"saga.deadline.polling.batch-size", "1.5", "1.5"},
		{"saga.deadline.polling.batch-size", "9223372036854775808", "9223372036854775808"},
		{"saga.deadline.polling.batch-size", "[100]", "a list"},
		{"saga.deadline.lease-ttl", "0s", "0s"},
		{"saga.deadline.lease-name", "12", "12"},
		{"saga.deadline.lease-name", `"a\nb"`, `"a\nb"`},
		{"saga.deadline.lease-name", strings.Repeat("a", 201), `"` + strings.Repeat("a", 60) + `"…`},
		{"saga.deadline.enabled", "yes", `"yes"`},
		{"saga.deadline.enabled", "1", "1"},
		{"saga.deadline.enabled", "'true'", `"true"`},
		{"saga.deadline.retry.max-attempts", "-1", "-1"},
		{"saga.deadline.retry.max-attempts", "99999999999", "99999999999"},
		{"saga.deadline.retry.initial-backoff", "0s", "0s"},
		{"saga.deadline.retry.max-backoff", "0s", "0s"},
		{"saga.deadline.retry.jitter", "1", "1"},
		{"saga.deadline.retry.jitter", "-0.1", "-0.1"},
		{"saga.deadline.retry.jitter", ".nan", "NaN"},
		{"saga.deadline.retry.jitter", ".inf", "+Inf"},
		{"saga.deadline.retry.jitter", "1e999", `"1e999"`},
		{"saga.deadline.retry.jitter", "'0.1'", `"0.1"`},
		{"saga.outbox.retry.max-attempts", "-1", "-1"},
		{"saga.workers", "0", "0"},
		{"saga.workers", "99999999", "99999999"},
		{"saga.clock", "sundial", `"sundial"`},
		{"saga.clock", "Database", `"Database"`},
		{"saga.clock", "''", `""`},
		{"saga.schema.table-prefix", "a-b", `"a-b"`},
		{"saga.schema.table-prefix", "1a", `"1a"`},
		{"saga.schema.tables.event", "a.b", `"a.b"`},
		{"saga.schema.tables.event", `'a"; drop table b'`, `"a\"; drop table b"`},
		{"saga.schema.tables.event", "événement", `"événement"`},
		{"saga.schema.tables.event", strings.Repeat("a", 41), `"` + strings.Repeat("a", 41) + `"`},
		{"saga.event.retention", "0s", "0s"},
		{"saga.instance.retention", "-1s", "-1s"},
		{"saga.limits.value", "0", "0"},
		{"saga.limits.value", "1025", "1025"},
		{"saga.limits.payload", "0", "0"},
		{"database.max-open", "-1", "-1"},
		{"database.max-open", "3", "3"},
		{"saga.deadline.polling.interval", "1us", "1µs"},
		{"saga.deadline.lease-ttl", "999us", "999µs"},
		{"database.prepare", "maybe", `"maybe"`},
	} {
		name := file(t, c.key+": "+c.value)
		source, err := config.Load(name)
		require.NoError(t, err)
		_, err = source.Norn()
		require.ErrorContains(t, err, "config: "+c.key+" ("+name+"): got "+c.got+", want ", "%s: %s", c.key, c.value)
		require.NotContains(t, err.Error(), "\n", "one mistake, one line: %s: %s", c.key, c.value)
	}
}

func TestDatabaseURLThatIsNoneIsRefusedAndNotShown(t *testing.T) {
	for _, value := range []string{"mysql://app:hunter2@db/shop", "hunter2.db", "sqlite://", "postgres://app:%zzhunter2@db/shop"} {
		name := file(t, "database.url: '"+value+"'")
		source, err := config.Load(name)
		require.NoError(t, err)
		_, err = source.Norn()
		require.EqualError(t, err, "config: database.url ("+name+"): must begin with sqlite:// or postgres:// and be a URL, "+
			"special characters of a password escaped (the value is not shown, it may hold a password)")
	}
}

func TestWrongEnvironmentValuesAreRefused(t *testing.T) {
	for _, c := range [][2]string{
		{"SAGA_WORKERS", "four"}, {"SAGA_WORKERS", " 4"}, {"SAGA_WORKERS", "1e3"}, {"SAGA_WORKERS", "99999999999999999999"},
		{"SAGA_DEADLINE_ENABLED", "1"}, {"SAGA_DEADLINE_ENABLED", "TRUE"}, {"SAGA_DEADLINE_RETRY_JITTER", "NaN"},
		{"SAGA_DEADLINE_RETRY_JITTER", "inf"}, {"SAGA_DEADLINE_RETRY_JITTER", "1e999"}, {"SAGA_DEADLINE_LEASE_TTL", "2 m"},
	} {
		t.Run(c[0]+"="+c[1], func(t *testing.T) {
			t.Setenv(c[0], c[1])
			_, err := without(t).Norn()
			require.ErrorContains(t, err, "("+c[0]+"): got \""+c[1]+"\", want ")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	for yaml, want := range map[string]string{
		"saga: {deadline: {lease-ttl: 30s}}":                                                       "saga.deadline.lease-ttl (F): got 30s, want more than the 30s of saga.deadline.polling.interval",
		"saga: {deadline: {polling: {interval: 2m}}}":                                              "saga.deadline.lease-ttl: got 2m, want more than the 2m of saga.deadline.polling.interval",
		"saga: {deadline: {retry: {initial-backoff: 2h}}}":                                         "saga.deadline.retry.max-backoff: got 1h, want at least the 2h of saga.deadline.retry.initial-backoff",
		"saga: {outbox: {retry: {max-backoff: 1s}}}":                                               "saga.outbox.retry.max-backoff (F): got 1s, want at least the 5s of saga.outbox.retry.initial-backoff",
		"saga: {schema: {tables: {event: Saga_Command}}}":                                          "saga.schema.tables.event (F): got \"Saga_Command\", want another name than that of saga.schema.tables.command, also ignoring case",
		"saga: {schema: {tables: {event: x, history: X}}}":                                         "saga.schema.tables.history (F): got \"X\", want another name than that of saga.schema.tables.event, also ignoring case",
		"saga: {schema: {table-prefix: aaaaaaaaaaaaaaaaaaaaaaa}}":                                  "saga.schema.table-prefix (F): got \"aaaaaaaaaaaaaaaaaaaaaaa\", want a shorter one: aaaaaaaaaaaaaaaaaaaaaaaSAGA_DEADLINE_LOCK is longer than 40 bytes",
		"saga: {schema: {table-prefix: x_, tables: {event: x_saga_event, history: x_saga_event}}}": "saga.schema.tables.history (F): got \"x_saga_event\", want another name than that of saga.schema.tables.event, also ignoring case",
	} {
		name := file(t, yaml)
		source, err := config.Load(name)
		require.NoError(t, err)
		_, err = source.Norn()
		require.EqualError(t, err, "config: "+strings.ReplaceAll(want, "(F)", "("+name+")"))
	}
}

func TestEqualBackoffsAndNoJitterAreAccepted(t *testing.T) {
	_, err := norn(t, "saga: {deadline: {enabled: false, retry: {initial-backoff: 1h, jitter: 0, max-attempts: 0}}, instance: {retention: 0s}}")
	require.NoError(t, err)
}

func TestUnknownKeysAreRefusedWithTheNearest(t *testing.T) {
	for yaml, want := range map[string]string{
		"saga: {worker: 3}":                            "saga.worker (F): is no setting; did you mean saga.workers?",
		"saga: {deadline: {leaseTtl: 3m}}":             "saga.deadline.leasettl (F): is no setting; did you mean saga.deadline.lease-ttl?",
		"saga: {polling: {interval: 3m}}":              "saga.polling.interval (F): is no setting; did you mean saga.deadline.polling.interval?",
		"saga: {deadline: {polling: {batch_size: 3}}}": "saga.deadline.polling.batch_size (F): is no setting; did you mean saga.deadline.polling.batch-size?",
		"database: {uri: 'sqlite://a.db'}":             "database.uri (F): is no setting; did you mean database.url?",
		"saga: {zzzzzzzzzzz: }":                        "saga.zzzzzzzzzzz (F): is no setting",
		"saga: {history: {enabled: true}}":             "saga.history.enabled (F): is no setting; did you mean saga.deadline.enabled?",
		"saga: {system-identity: me}":                  "saga.system-identity (F): is no setting",
		"saga: {deadline: 5}":                          "saga.deadline (F): got a single value, want a map of settings",
		"saga: [deadline]":                             "saga (F): got a list, want a map of settings",
		"saga: {workers: {most: 3}}":                   "saga.workers (F): got a map, want whole number, from 1 to 65536",
	} {
		name := file(t, yaml)
		source, err := config.Load(name)
		require.NoError(t, err)
		_, err = source.Norn()
		require.EqualError(t, err, "config: "+strings.ReplaceAll(want, "(F)", "("+name+")"))
	}
}

func TestOtherSectionsAreLeftAlone(t *testing.T) {
	c, err := norn(t, "saga: \ndatabase: {}\npayment: {anything: [1, {a: b}], saga: {workers: x}}\nsagas: 5\n7: x")
	require.NoError(t, err)
	require.Equal(t, config.Default(), c)
}

func TestAllMistakesAreReportedTogether(t *testing.T) {
	t.Setenv("SAGA_CLOCK", "sundial")
	name := file(t, `
saga:
  workers: 0
  worker: 3
  deadline:
    lease-ttl: 300
    polling:
      interval: 10m
  outbox:
    retry:
      max-backoff: 1s
`)
	source, err := config.Load(name)
	require.NoError(t, err)
	_, err = source.Norn()
	require.EqualError(t, err, strings.ReplaceAll(`config: saga.worker (F): is no setting; did you mean saga.workers?
config: saga.deadline.lease-ttl (F): got 300, want duration with a unit, at least 1ms: it needs a unit, for example 30s
config: saga.workers (F): got 0, want whole number, from 1 to 65536
config: saga.clock (SAGA_CLOCK): got "sundial", want text, database or process
config: saga.outbox.retry.max-backoff (F): got 1s, want at least the 5s of saga.outbox.retry.initial-backoff`, "(F)", "("+name+")"))
}

func TestConfigBuiltByHandIsValidated(t *testing.T) {
	c := config.Default()
	c.Workers = 0
	c.Outbox.Retry.Jitter = math.NaN()
	c.Deadline.LeaseTTL = time.Second
	require.EqualError(t, c.Validate(), `config: saga.outbox.retry.jitter: got NaN, want number, at least 0 and below 1
config: saga.workers: got 0, want whole number, from 1 to 65536
config: saga.deadline.lease-ttl: got 1s, want more than the 30s of saga.deadline.polling.interval`)
}

func TestFileThatCannotBeReadIsRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	_, err := config.Load(missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "config: open "+missing)
	_, err = config.Load(t.TempDir())
	require.ErrorContains(t, err, "config: read ")
}

func TestYAMLMistakesAreReportedWithFileAndLine(t *testing.T) {
	for yaml, want := range map[string]string{
		"saga:\n  workers: 3\n  workers: 4\n": `F:3: mapping key "workers" already defined at line 2`,
		"a: 1\na: 2\nb: {c: 1,\n  c: 2}\n":    "F:2: mapping key \"a\" already defined at line 1",
		"saga:\n\tworkers: 3\n":               "F:2: found character that cannot start any token",
		"saga: [1\n":                          "F:1: did not find expected ',' or ']'",
		"- saga\n":                            "F:1: cannot unmarshal !!seq into map[string]interface {}",
		"just text":                           "F:1: cannot unmarshal !!str `just text` into map[string]interface {}",
		"%YAML 1.1\n# one\n---\nsaga: {}\n--- # two\nsaga: {workers: 3}": "F:5: a second document begins here, want one",
		"a: \x01":       "F: control characters are not allowed",
		"a: &a {b: *a}": "F: anchor 'a' value contains itself",
	} {
		name := file(t, yaml)
		_, err := config.Load(name)
		require.ErrorContains(t, err, "config: "+strings.ReplaceAll(want, "F:", name+":"), yaml)
	}
}

func TestEmptyFileHoldsNothing(t *testing.T) {
	for _, yaml := range []string{"", "# nothing\n", "---\n", "{}"} {
		c, err := norn(t, yaml)
		require.NoError(t, err)
		require.Equal(t, config.Default(), c)
	}
}
