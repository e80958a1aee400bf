package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/config"
)

const page = "../docs/configuration.md"

func TestDocumentedTableIsTheListOfKeys(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	const begin, end = "<!-- keys: begin -->\n", "<!-- keys: end -->"
	before, rest, found := strings.Cut(string(content), begin)
	require.True(t, found, "%s: no line %q", page, begin)
	documented, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s: no line %q", page, end)
	if os.Getenv("NORN_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+keyTable()+end+after), 0o644))
		return
	}
	require.Equal(t, keyTable(), documented, "regenerate with NORN_UPDATE_GOLDEN=1")
}

func keyTable() string {
	var b strings.Builder
	b.WriteString("| key | environment variable | value | default | meaning |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		standard := "–"
		switch {
		case strings.Contains(k.Default, " "):
			standard = k.Default
		case k.Default != "":
			standard = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", k.Name, k.Env, k.Kind, standard, k.Meaning)
	}
	return b.String()
}
