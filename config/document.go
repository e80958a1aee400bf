package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// document is what a file says.
type document struct {
	tree    map[string]any    // as decoded
	entries map[string]any    // by lower-case dotted key; maps only when empty
	twice   map[string]string // lower-case key to both its spellings, as text
	spelt   map[string]string // lower-case key to its first spelling
}

func read(file string) (document, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return document{}, fmt.Errorf("config: %w", err)
	}
	if line := secondDocument(string(content)); line > 0 {
		return document{}, fmt.Errorf("config: %s:%d: a second document begins here, want one", file, line)
	}
	decoder, err := viper.NewCodecRegistry().Decoder("yaml")
	if err != nil {
		return document{}, fmt.Errorf("config: %w", err)
	}
	d := document{tree: make(map[string]any), entries: make(map[string]any), twice: make(map[string]string), spelt: make(map[string]string)}
	if err := decoder.Decode(content, d.tree); err != nil {
		return document{}, located(file, err)
	}
	d.enter("", d.tree)
	return d, nil
}

// secondDocument returns the line at which a second YAML document begins, or 0. A decoder would leave it out silently.
func secondDocument(content string) int {
	begun := false
	for i, line := range strings.Split(content, "\n") {
		line = strings.TrimRight(line, " \t\r")
		marker := line == "---" || strings.HasPrefix(line, "--- ")
		switch {
		case marker && begun:
			return i + 1
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "%"):
		default:
			begun = true
		}
	}
	return 0
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// located rewrites the decoder's report, a line of text per mistake, to one error per mistake with file and line.
func located(file string, err error) error {
	var errs []error
	report := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:")
	for line := range strings.SplitSeq(report, "\n") {
		line = strings.TrimSpace(line)
		if at := yamlLine.FindStringSubmatch(line); at != nil {
			errs = append(errs, fmt.Errorf("config: %s:%s: %s", file, at[1], at[2]))
		} else if line != "" {
			errs = append(errs, fmt.Errorf("config: %s: %s", file, line))
		}
	}
	return errors.Join(errs...)
}

func (d document) enter(prefix string, tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		spelt := prefix + name
		if branch, ok := mapping(tree[name]); ok && len(branch) > 0 {
			d.enter(spelt+".", branch)
			continue
		}
		key := strings.ToLower(spelt)
		if _, taken := d.entries[key]; taken {
			d.twice[key] = d.spelt[key] + " and as " + spelt
		} else {
			d.spelt[key] = spelt
		}
		d.entries[key] = tree[name]
	}
}

// mapping is value as a map, if it is one; names that are no text are written out.
func mapping(value any) (map[string]any, bool) {
	switch m := value.(type) {
	case map[string]any:
		return m, true
	case map[any]any:
		named := make(map[string]any, len(m))
		for name, value := range m {
			named[fmt.Sprint(name)] = value
		}
		return named, true
	default:
		return nil, false
	}
}

// values is what the file sets: no null, no map.
func (d document) values() map[string]any {
	values := make(map[string]any)
	for key, value := range d.entries {
		if _, branch := mapping(value); !branch && value != nil {
			values[key] = value
		}
	}
	return values
}

func (d document) has(key string) bool {
	for entry := range d.entries {
		if entry == key || strings.HasPrefix(entry, key+".") {
			return true
		}
	}
	return false
}

// at is the value at a lower-case key with the spelling of what is beneath it, nil if there is none.
func (d document) at(key string) any { return find(d.tree, key) }

func find(tree map[string]any, key string) any {
	var merged map[string]any
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		var found any
		lower := strings.ToLower(name)
		branch, ok := mapping(tree[name])
		switch {
		case lower == key:
			found = tree[name]
		case ok && strings.HasPrefix(key, lower+"."):
			found = find(branch, key[len(lower)+1:])
		}
		part, ok := mapping(found)
		if found != nil && !ok {
			return found
		}
		if ok && merged == nil {
			merged = make(map[string]any)
		}
		maps.Copy(merged, part)
	}
	if merged == nil {
		return nil
	}
	return merged
}
