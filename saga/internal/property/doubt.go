package property

import (
	"fmt"
	"reflect"
	"strings"
)

// Doubt says which part of a path values of t cannot have, with the name that was perhaps meant; empty: they may have
// it all. Maps and interfaces may have anything.
func Doubt(t reflect.Type, path string) string {
	return doubt(t, strings.Split(path, "/"))
}

func doubt(t reflect.Type, path []string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if len(path) == 0 || t.Kind() == reflect.Interface {
		return ""
	}
	switch t.Kind() {
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return doubt(t.Elem(), path[1:])
		}
	case reflect.Struct:
		if index := field(t, path[0]); index != nil {
			return doubt(t.FieldByIndex(index).Type, path[1:])
		}
	}
	text := fmt.Sprintf("%v has no %q, only metadata could have it", t, path[0])
	if meant := nearest(t, path[0]); meant != "" {
		text += fmt.Sprintf("; did you mean %q?", meant)
	}
	return text
}

// nearest is the property of t that a misspelt one most likely means, empty if there is none.
func nearest(t reflect.Type, segment string) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	best, least := "", max(1, len(segment)/3)+1
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if distance := edits(strings.ToLower(segment), strings.ToLower(name)); distance < least {
			best, least = name, distance
		}
	}
	return best
}

// edits is the Levenshtein distance of two short names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
