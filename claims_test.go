package norn_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testNames lists the test functions of the module.
func testNames(t *testing.T) string {
	t.Helper()
	var names strings.Builder
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range function.FindAllStringSubmatch(string(source), -1) {
			names.WriteString(match[1] + "\n")
		}
		return err
	})
	require.NoError(t, err)
	return names.String()
}

func TestEveryPitfallIsTestedOrWaits(t *testing.T) {
	names := testNames(t)
	page, err := os.ReadFile(filepath.Join("docs", "pitfalls.md"))
	require.NoError(t, err)
	var missing []string
	for n := 1; n <= 87; n++ {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| P-%02d \| .+ \| (yes|waits for: .+) \|$`, n)).FindStringSubmatch(string(page))
		require.NotNil(t, row, "docs/pitfalls.md has no row P-%02d", n)
		tested := strings.Contains(names, fmt.Sprintf("TestP%02d", n))
		if row[1] == "yes" && !tested {
			missing = append(missing, fmt.Sprintf("P-%02d", n))
		}
		require.False(t, row[1] != "yes" && tested, "docs/pitfalls.md says that P-%02d waits, and a test names it", n)
	}
	require.Empty(t, missing, "no test names these pitfalls")
}

func TestEveryCaseOfTheMainPathIsTested(t *testing.T) {
	names := testNames(t)
	var missing []string
	for n := 1; n <= 25; n++ {
		if !strings.Contains(names, fmt.Sprintf("TestCase01%02d", n)) {
			missing = append(missing, fmt.Sprintf("5.1.%d", n))
		}
	}
	require.Empty(t, missing, "no test names these cases")
}
