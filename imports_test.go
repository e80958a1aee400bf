package norn_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/norn-go/norn"

// arrows is the picture of our packages: what each may import of the others. Paths are relative to the module; "/..."
// stands for everything below, "..." for everything. A package without an entry here has no place in the picture yet.
var arrows = map[string][]string{
	"":                  {},
	"retry":             {},
	"config":            {},
	"schema":            {},
	"deadline":          {"schema"},
	"lease":             {"schema", "retry"},
	"outbox":            {"lease", "schema", "retry"},
	"poller":            {"deadline", "lease", "retry"},
	"saga/internal/...": {},
	"saga":              {"deadline", "outbox", "schema", "retry", "saga/internal/..."},
	"fxmodule":          {"config", "saga", "poller", "outbox", "deadline", "lease", "schema", "retry"},
	"schema/schematest": {"schema"},
	"saga/sagatest":     {"fxmodule", "saga", "poller", "outbox", "deadline", "lease", "schema", "schema/schematest", "retry", "saga/internal/..."},
	"bench":             {"..."},
	"mutants":           {},
	"cmd/...":           {"..."},
	"examples/...":      {"..."},
}

// testOnly packages may use what tests use, and production code may not use them.
var testOnly = []string{"schema/schematest", "saga/sagatest"}

// libraries says which of our packages a library may reach, also through others of ours or through another library.
var libraries = []struct {
	paths  []string
	within []string
}{
	{paths: []string{"go.uber.org/fx/...", "go.uber.org/dig/..."}, within: []string{"fxmodule", "saga/sagatest", "cmd/...", "examples/..."}},
	{paths: []string{"github.com/spf13/viper/..."}, within: []string{"config", "fxmodule", "saga/sagatest", "cmd/...", "examples/..."}},
	{paths: []string{"testing/...", "github.com/stretchr/testify/...", "go.uber.org/goleak/...", "pgregory.net/rapid/..."}, within: testOnly},
}

// direct says which of our packages may name a library in an import of their own.
var direct = []struct {
	paths  []string
	within []string
}{
	{paths: []string{"github.com/lib/pq/...", "github.com/mattn/go-sqlite3/...", "github.com/pressly/goose/v3/..."}, within: []string{"schema"}},
}

// listed is what go list says about a package's code, its tests left aside.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestPackagesImportOnlyWhatThePictureAllows(t *testing.T) {
	for _, p := range list(t) {
		require.NoError(t, checkArrows(p))
	}
}

func TestLibrariesReachOnlyThePackagesTheyBelongTo(t *testing.T) {
	for _, p := range list(t) {
		require.NoError(t, checkLibraries(p))
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for name, p := range map[string]listed{
		"an arrow against the picture":      {ImportPath: "poller", Imports: []string{module + "/saga"}},
		"a package outside the picture":     {ImportPath: "util"},
		"a test package used in production": {ImportPath: "examples/transfer", Imports: []string{module + "/saga/sagatest"}},
		"the root package used":             {ImportPath: "saga", Imports: []string{module}},
		"fx below fxmodule":                 {ImportPath: "saga", Deps: []string{"go.uber.org/fx"}},
		"viper beside config":               {ImportPath: "poller", Deps: []string{"github.com/spf13/viper/internal/features"}},
		"testing in production":             {ImportPath: "cmd/norn", Deps: []string{"testing"}},
		"testify in production":             {ImportPath: "schema", Deps: []string{"github.com/stretchr/testify/require"}},
		"a driver outside schema":           {ImportPath: "examples/transfer", Imports: []string{"github.com/lib/pq"}},
		"goose outside schema":              {ImportPath: "fxmodule", Imports: []string{"github.com/pressly/goose/v3"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.ImportPath = module + "/" + p.ImportPath
			require.Error(t, cmp.Or(checkArrows(p), checkLibraries(p)))
		})
	}
}

func checkArrows(p listed) error {
	from, _ := ours(p.ImportPath)
	allowed, known := place(from)
	if !known {
		return fmt.Errorf("package %q is not in the picture of the packages: give it a place in docs and in this test", from)
	}
	var errs []error
	for _, path := range p.Imports {
		to, isOurs := ours(path)
		if !isOurs {
			continue
		}
		if !matchAny(allowed, to) || !matchAny(testOnly, from) && matchAny(testOnly, to) {
			errs = append(errs, fmt.Errorf("package %q must not import %q", from, to))
		}
	}
	return errors.Join(errs...)
}

func checkLibraries(p listed) error {
	from, _ := ours(p.ImportPath)
	var errs []error
	for _, rule := range libraries {
		errs = append(errs, confine(from, "contain", p.Deps, rule.paths, rule.within))
	}
	for _, rule := range direct {
		errs = append(errs, confine(from, "import", p.Imports, rule.paths, rule.within))
	}
	return errors.Join(errs...)
}

// confine reports the paths that only packages within may use, if from is none of those.
func confine(from, verb string, used, paths, within []string) error {
	if matchAny(within, from) {
		return nil
	}
	var errs []error
	for _, path := range used {
		if matchAny(paths, path) {
			errs = append(errs, fmt.Errorf("package %q must not %s %s, which belongs to %s", from, verb, path, strings.Join(within, ", ")))
		}
	}
	return errors.Join(errs...)
}

// place returns what the picture allows a package to import, and whether the package is in it.
func place(path string) (allowed []string, known bool) {
	for pattern, allowed := range arrows {
		if match(pattern, path) {
			return allowed, true
		}
	}
	return nil, false
}

// ours returns the path within the module, and whether the package is of the module at all.
func ours(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, path) })
}

func match(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	below, isTree := strings.CutSuffix(pattern, "/...")
	return path == below || isTree && strings.HasPrefix(path, below+"/")
}

func list(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	command.Stderr = os.Stderr
	output, err := command.Output()
	require.NoError(t, err)

	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, packages)
			return packages
		}
		require.NoError(t, err)
		packages = append(packages, p)
	}
}
