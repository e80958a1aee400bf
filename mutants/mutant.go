package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is a broken engine and the tests that must notice.
type mutant struct {
	name  string
	edits []edit
	tests selection
}

// edit breaks one file: the old text, which must stand there once, becomes the new one.
type edit struct{ file, old, new string }

// selection is a package and those of its tests that look for a mutant.
type selection struct{ pkg, run string }

// overlay writes the broken files into directory, and the file for go test -overlay that puts them in the
// place of those below root. It changes nothing there.
func (m mutant) overlay(root, directory string) (path string, err error) {
	texts := map[string]string{}
	for _, e := range m.edits {
		if texts[e.file] == "" {
			whole, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return "", err
			}
			texts[e.file] = string(whole)
		}
		if n := strings.Count(texts[e.file], e.old); n != 1 {
			return "", fmt.Errorf("%s has the text to break %d times, want once: mend the table of mutants\n%s", e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(texts[e.file], e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		broken := filepath.Join(directory, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = broken
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(directory, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
