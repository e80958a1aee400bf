package norn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
	"github.com/norn-go/norn/schema"
)

func TestSettingsAndErrorsHideTheSameOfADatabasesURL(t *testing.T) {
	for address, shown := range map[string]string{
		"":                                     "",
		"sqlite://a.db":                        "sqlite://a.db",
		"sqlite:///a@b c.db?_txlock=immediate": "sqlite:///a@b c.db?_txlock=immediate",
		"sqlite://shop.db?_auth_pass=hunter2":  "sqlite://shop.db?_auth_pass=xxxxx",
		"postgres://app@db/shop":               "postgres://app@db/shop",
		"postgres://app:hunter2@db/shop?sslmode=disable":         "postgres://app:xxxxx@db/shop?sslmode=disable",
		"postgresql://app:hunter2@db:5432/shop":                  "postgresql://app:xxxxx@db:5432/shop",
		"postgres://db/shop?user=app&password=hunter2":           "postgres://db/shop?user=app&password=xxxxx",
		"postgres://db/shop?p%61ssword=hunter2&sslmode=disable":  "postgres://db/shop?p%61ssword=xxxxx&sslmode=disable",
		"postgres://db/shop?sslpassword=hunter2&sslkey=/hunter2": "postgres://db/shop?sslpassword=xxxxx&sslkey=xxxxx",
		"postgres:///shop?host=/run/postgresql":                  "postgres:///shop?host=/run/postgresql",
		"postgres://app:12?hunter2@db/shop":                      "(not shown)",
		"postgres://app:12#hunter2@db/shop":                      "(not shown)",
		"postgres://app:12/hunter2@db/shop":                      "(not shown)",
		"postgres://app:hunter2\x7f@db/shop":                     "(not shown)",
		"host=db password=hunter2":                               "(not shown)",
		"hunter2":                                                "(not shown)",
	} {
		require.Equal(t, shown, schema.Redacted(address), address)
		require.Equal(t, "[url="+shown+" max-open=0 prepare=false]", config.Database{URL: address}.String(), address)
		require.NotContains(t, schema.Redacted(address), "hunter2")
	}
}
