package config

import (
	"slices"
	"strings"
)

// suggestion asks whether the known name nearest to name was meant; it is empty if none is near.
func suggestion(name string, known []string) string {
	slices.Sort(known)
	best, least := "", len(name)
	for _, candidate := range known {
		distance := edits(strings.ToLower(name), strings.ToLower(candidate))
		near := 3*distance <= len(name) || last(name) == last(candidate)
		if near && (best == "" || distance < least) {
			best, least = candidate, distance
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

func last(key string) string { return strings.ToLower(key[strings.LastIndexByte(key, '.')+1:]) }

// longestCompared bounds the work on absurdly long names.
const longestCompared = 200

// edits is the Levenshtein distance of two names.
func edits(a, b string) int {
	if len(a) > longestCompared {
		return len(a)
	}
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
