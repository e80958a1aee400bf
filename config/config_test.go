package config_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
)

func file(t *testing.T, yaml string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "app.yaml")
	require.NoError(t, os.WriteFile(name, []byte(yaml), 0o600))
	return name
}

func load(t *testing.T, yaml string, opts ...config.Option) *config.Source {
	t.Helper()
	source, err := config.Load(file(t, yaml), opts...)
	require.NoError(t, err)
	return source
}

func norn(t *testing.T, yaml string) (config.Config, error) {
	t.Helper()
	return load(t, yaml).Norn()
}

func without(t *testing.T) *config.Source {
	t.Helper()
	source, err := config.Load("")
	require.NoError(t, err)
	return source
}

func effective(c config.Config) map[string]string {
	values := make(map[string]string)
	for _, attr := range c.Effective() {
		values[attr.Key] = attr.Value.String()
	}
	return values
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	c, err := without(t).Norn()
	require.NoError(t, err)
	require.Equal(t, config.Default(), c)
	require.NoError(t, c.Validate())

	retry := config.Retry{MaxAttempts: 50, InitialBackoff: 5 * time.Second, MaxBackoff: time.Hour, Jitter: 0.2}
	require.Equal(t, config.Config{
		Deadline: config.Deadline{
			Enabled:  true,
			Polling:  config.Polling{Enabled: true, Interval: 30 * time.Second, BatchSize: 100},
			LeaseTTL: 2 * time.Minute,
			Retry:    retry,
		},
		Outbox:   config.Outbox{Relay: config.Relay{Enabled: true}, Retry: retry},
		Workers:  4 * runtime.GOMAXPROCS(0),
		Database: config.Database{Prepare: true},
		Clock:    "database",
		Wake:     config.Wake{Listen: true},
		Schema:   config.Schema{Auto: true},
		Event:    config.Event{Retention: 168 * time.Hour},
		Limits:   config.Limits{Value: 1024, Payload: 1048576},
	}, c)
	require.Equal(t, config.Tables{
		Instance: "SAGA_INSTANCE", Association: "SAGA_ASSOCIATION", Deadline: "SAGA_DEADLINE",
		DeadlineLock: "SAGA_DEADLINE_LOCK", Command: "SAGA_COMMAND", Event: "SAGA_EVENT", History: "SAGA_HISTORY",
	}, c.Schema.Names())
}

func TestEffectiveSettingsAreTheDocumentedDefaults(t *testing.T) {
	shown := effective(config.Default())
	for _, key := range config.Keys() {
		switch key.Name {
		case "saga.workers":
			require.Equal(t, fmt.Sprint(4*runtime.GOMAXPROCS(0)), shown[key.Name])
		default:
			require.Equal(t, key.Default, shown[key.Name], key.Name)
		}
	}
	require.Len(t, shown, len(config.Keys()))
}

func TestEveryKeyHasAnEnvironmentVariableOfItsOwn(t *testing.T) {
	owners := make(map[string]string)
	for _, key := range config.Keys() {
		require.Equal(t, strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key.Name)), key.Env)
		require.Empty(t, owners[key.Env])
		owners[key.Env] = key.Name
	}
	require.Equal(t, "saga.deadline.polling.batch-size", owners["SAGA_DEADLINE_POLLING_BATCH_SIZE"])
}

// others holds for every key a value that is not the default, and a second one.
var others = map[string][2]string{
	"saga.deadline.enabled":               {"false", "true"},
	"saga.deadline.polling.enabled":       {"false", "true"},
	"saga.deadline.polling.interval":      {"15s", "20s"},
	"saga.deadline.polling.batch-size":    {"7", "8"},
	"saga.deadline.lease-ttl":             {"3m", "4m"},
	"saga.deadline.lease-name":            {"blue", "green"},
	"saga.deadline.schema.auto":           {"false", "true"},
	"saga.deadline.retry.max-attempts":    {"7", "0"},
	"saga.deadline.retry.initial-backoff": {"1s", "2s"},
	"saga.deadline.retry.max-backoff":     {"2h", "3h"},
	"saga.deadline.retry.jitter":          {"0.5", "0"},
	"saga.outbox.relay.enabled":           {"false", "true"},
	"saga.outbox.retry.max-attempts":      {"7", "0"},
	"saga.outbox.retry.initial-backoff":   {"1s", "2s"},
	"saga.outbox.retry.max-backoff":       {"2h", "3h"},
	"saga.outbox.retry.jitter":            {"0.5", "0"},
	"saga.workers":                        {"3", "5"},
	"saga.clock":                          {"process", "database"},
	"saga.wake.listen":                    {"false", "true"},
	"saga.schema.table-prefix":            {"shop_", "x"},
	"saga.schema.tables.instance":         {"a1", "a2"},
	"saga.schema.tables.association":      {"b1", "b2"},
	"saga.schema.tables.deadline":         {"c1", "c2"},
	"saga.schema.tables.deadline-lock":    {"d1", "d2"},
	"saga.schema.tables.command":          {"e1", "e2"},
	"saga.schema.tables.event":            {"f1", "f2"},
	"saga.schema.tables.history":          {"g1", "g2"},
	"saga.event.retention":                {"1h", "2h"},
	"saga.instance.retention":             {"1h", "0s"},
	"saga.limits.value":                   {"10", "1024"},
	"saga.limits.payload":                 {"10", "20"},
	"database.url":                        {"sqlite://a.db", "postgres://db/b"},
	"database.max-open":                   {"4", "5"},
	"database.prepare":                    {"false", "true"},
}

func TestP75EveryKeyIsOverriddenByItsEnvironmentVariableAlone(t *testing.T) {
	for _, key := range config.Keys() {
		t.Run(key.Name, func(t *testing.T) {
			t.Setenv(key.Env, others[key.Name][0])
			c, err := without(t).Norn()
			require.NoError(t, err)
			want := effective(config.Default())
			if key.Name == "saga.schema.table-prefix" {
				for name, value := range want {
					if strings.HasPrefix(name, "saga.schema.tables.") {
						want[name] = others[key.Name][0] + value
					}
				}
			}
			want[key.Name] = others[key.Name][0]
			require.Equal(t, want, effective(c))
		})
	}
}

func TestP75EnvironmentBeatsFileBeatsDefaultForEveryKey(t *testing.T) {
	var yaml strings.Builder
	for _, key := range config.Keys() {
		fmt.Fprintf(&yaml, "%s: %s\n", key.Name, others[key.Name][0])
	}
	source := load(t, yaml.String())
	c, err := source.Norn()
	require.NoError(t, err)
	for name, value := range effective(c) {
		require.Equal(t, others[name][0], value, name)
	}
	for _, key := range config.Keys() {
		t.Setenv(key.Env, others[key.Name][1])
	}
	c, err = source.Norn()
	require.NoError(t, err)
	for name, value := range effective(c) {
		require.Equal(t, others[name][1], value, name)
	}
}

func TestP75KeyOfAPartialSubtreeKeepsItsNeighbours(t *testing.T) {
	t.Setenv("SAGA_DEADLINE_POLLING_BATCH_SIZE", "7")
	t.Setenv("SAGA_DEADLINE_POLLING", "not a key")
	t.Setenv("DATABASE", "not a key")
	c, err := norn(t, "saga: {deadline: {polling: {interval: 10s}}}\ndatabase: {url: 'sqlite://a.db'}")
	require.NoError(t, err)
	require.Equal(t, config.Polling{Enabled: true, Interval: 10 * time.Second, BatchSize: 7}, c.Deadline.Polling)
	require.Equal(t, "sqlite://a.db", c.Database.URL)
}

func TestEmptyEnvironmentVariableCountsAsUnset(t *testing.T) {
	for _, key := range config.Keys() {
		t.Setenv(key.Env, "")
	}
	c, err := norn(t, "saga: {workers: 3, schema: {table-prefix: shop_}}")
	require.NoError(t, err)
	require.Equal(t, 3, c.Workers)
	require.Equal(t, "shop_", c.Schema.TablePrefix)
	require.Equal(t, 30*time.Second, c.Deadline.Polling.Interval)
}

func TestOverrideBeatsTheEnvironment(t *testing.T) {
	t.Setenv("SAGA_WORKERS", "3")
	c, err := load(t, "saga: {workers: 4}", config.Override("saga.Workers", "5"), config.Override("saga.clock", "")).Norn()
	require.NoError(t, err)
	require.Equal(t, 5, c.Workers)
	require.Equal(t, "database", c.Clock)
}

func TestOverrideOfAnUnknownKeyIsRefused(t *testing.T) {
	_, err := load(t, "", config.Override("saga.worker", "5")).Norn()
	require.EqualError(t, err, "config: saga.worker (given by the program): is no setting; did you mean saga.workers?")
}

func TestP74KeysAreMatchedIgnoringCase(t *testing.T) {
	c, err := norn(t, "SAGA: {Deadline: {LEASE-TTL: 3m, Lease-Name: MixedCase}}\nSaga: {Workers: 2}\nsaga.CLOCK: process")
	require.NoError(t, err)
	require.Equal(t, 3*time.Minute, c.Deadline.LeaseTTL)
	require.Equal(t, "MixedCase", c.Deadline.LeaseName)
	require.Equal(t, 2, c.Workers)
	require.Equal(t, "process", c.Clock)
}

func TestP74KeyInTwoSpellingsIsRefused(t *testing.T) {
	for yaml, spelt := range map[string]string{
		"saga: {workers: 2, Workers: 3}":         "saga.Workers and as saga.workers",
		"Saga: {workers: 2}\nsaga: {workers: 3}": "Saga.workers and as saga.workers",
		"saga: {workers: 2}\nsaga.workers: 3":    "saga.workers and as saga.workers",
	} {
		_, err := norn(t, yaml)
		require.ErrorContains(t, err, "config: saga.workers (", yaml)
		require.ErrorContains(t, err, "is written twice, as "+spelt+"; remove one", yaml)
	}
}

func TestPrefixIsPutBeforeDefaultNamesOnly(t *testing.T) {
	c, err := norn(t, "saga: {schema: {table-prefix: shop_, tables: {event: SAGA_EVENT}}}")
	require.NoError(t, err)
	require.Equal(t, "shop_SAGA_DEADLINE_LOCK", c.Schema.Names().DeadlineLock)
	require.Equal(t, "SAGA_EVENT", c.Schema.Names().Event)
	require.Equal(t, "shop_SAGA_DEADLINE_LOCK", effective(c)["saga.schema.tables.deadline-lock"])
}

func TestNoSecretIsShown(t *testing.T) {
	for address, shown := range map[string]string{
		"postgres://app:hunter2@db/shop?sslmode=disable":        "postgres://app:xxxxx@db/shop?sslmode=disable",
		"postgres://db/shop?user=app&password=hunter2":          "postgres://db/shop?user=app&password=xxxxx",
		"postgres://db/shop?p%61ssword=hunter2&sslmode=disable": "postgres://db/shop?p%61ssword=xxxxx&sslmode=disable",
		"postgres:///shop?host=/run/postgresql":                 "postgres:///shop?host=/run/postgresql",
		"sqlite://shop.db?_auth_pass=hunter2":                   "sqlite://shop.db?_auth_pass=xxxxx",
		"postgres://app:12?hunter2@db/shop":                     "(not shown)",
		"postgres://app:12#hunter2@db/shop":                     "(not shown)",
		"postgres://app:hunter2\x7f@db/shop":                    "(not shown)",
		"host=db password=hunter2":                              "(not shown)",
	} {
		c := config.Default()
		c.Database.URL = address
		require.Equal(t, shown, effective(c)["database.url"])
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("start", "config", c)
		for _, text := range []string{log.String(), fmt.Sprintf("%v %+v", c, c), fmt.Sprint(c.Validate())} {
			require.NotContains(t, text, "hunter2")
		}
	}
}

func TestRefusedURLIsNotShown(t *testing.T) {
	for _, yaml := range []string{
		"database: {url: 'mysql://app:hunter2@db/shop'}",
		"database: {url: 'host=db password=hunter2'}",
		"database: {url: [hunter2]}",
		"database: 'postgres://app:hunter2@db/shop'",
		"database: {url: {postgres: hunter2}}",
	} {
		_, err := norn(t, yaml)
		require.ErrorContains(t, err, "config: database", yaml)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestSettingIsReadAsText(t *testing.T) {
	source := load(t, "booking: {Expiry: {cron: 0 9 * * *}, days: 5, on: true, share: 0.25, list: [1], none: }")
	for key, want := range map[string]string{
		"booking.expiry.cron": "0 9 * * *", "Booking.Expiry.Cron": "0 9 * * *", "booking.days": "5", "booking.on": "true",
		"booking.share": "0.25", "saga.deadline.lease-ttl": "2m", "saga.schema.tables.event": "SAGA_EVENT",
	} {
		got, ok := source.String(key)
		require.True(t, ok, key)
		require.Equal(t, want, got, key)
	}
	for _, key := range []string{"", "booking", "booking.list", "booking.none", "booking.other", "database.url"} {
		_, ok := source.String(key)
		require.False(t, ok, key)
	}
	t.Setenv("BOOKING_EXPIRY_CRON", "-")
	got, ok := source.String("booking.expiry.cron")
	require.True(t, ok)
	require.Equal(t, "-", got)
}

func TestSourceIsReadFromSeveralGoroutines(t *testing.T) {
	source := load(t, "booking: {a: 1, b: 2}\npayment: {share: 1}")
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			source.String("booking.a")
			source.String("booking.b")
			_, _ = paymentOf(source)
			_, _ = source.Norn()
		})
	}
	readers.Wait()
}

func TestUnknownEnvironmentVariableIsAWarning(t *testing.T) {
	t.Setenv("SAGA_WORKER", "3")
	t.Setenv("SAGA_ZZZ_UNRELATED_TO_ANYTHING_AT_ALL", "3")
	t.Setenv("SAGA_CLOCK", "process")
	t.Setenv("SAGA_EMPTY", "")
	t.Setenv("DATABASE_HOST", "db")
	source := without(t)
	_, err := source.Norn()
	require.NoError(t, err)
	require.Equal(t, []string{
		"environment variable SAGA_WORKER belongs to no setting; did you mean SAGA_WORKERS?",
		"environment variable SAGA_ZZZ_UNRELATED_TO_ANYTHING_AT_ALL belongs to no setting",
	}, source.Warnings())
}
