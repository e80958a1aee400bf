package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
)

// quoteFile turns an expected text into a pattern in which "(F)" is any origin in a file.
func quoteFile(want string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(want), `\(F\)`, `\(.*app\.yaml\)`)
}

// FuzzLoad checks P-76 and its like: whatever the file says, it is refused, or every duration in it has its unit and every
// setting is within its limits.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "saga: {deadline: {lease-ttl: 30}}", "saga:\n  deadline:\n    lease-ttl: 3m\n    polling: {interval: 10s, batch-size: 7}\n",
		"saga.deadline.lease-ttl: '30'", "saga: {workers: 1e3, clock: process}", "a: &a [1]\nb: *a", "payment: {max-retries: 3, rates: {EUR: 1}}",
		"payment: {routes: [{name: x, timeout: 1}]}", "? [1]\n: 2", "<<: {saga: {workers: 3}}", "Saga: {Workers: 1}\nsaga: {workers: 2}",
		"saga: {deadline: {retry: {jitter: .nan}}}", "---\na: 1\n---\nb: 2", "database: {url: 'postgres://a:b@c/d'}", "1: {2: 3}\nnull: ~",
	} {
		f.Add(seed)
	}
	name := filepath.Join(f.TempDir(), "app.yaml")
	f.Fuzz(func(t *testing.T, yaml string) {
		require.NoError(t, os.WriteFile(name, []byte(yaml), 0o600))
		source, err := config.Load(name)
		if err != nil {
			return
		}
		_, _ = paymentOf(source)
		c, err := source.Norn()
		if err != nil {
			return
		}
		require.NoError(t, c.Validate())
		require.Greater(t, c.Deadline.LeaseTTL, c.Deadline.Polling.Interval)
		for _, key := range config.Keys() {
			if text, ok := source.String(key.Name); ok && strings.HasPrefix(key.Kind, "duration") {
				_, err := time.ParseDuration(text)
				require.NoError(t, err, key.Name)
				require.Regexp(t, `[a-zµμ]$`, text, key.Name)
			}
		}
	})
}
