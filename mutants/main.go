// Mutants breaks norn on purpose, one way after the other, and sees whether a test notices within a minute. It
// prints a table and fails when a mutant survives, or when the tests fail on norn as it is. The arguments choose
// mutants by parts of their names; without any all are tried. The sources stay as they are.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(chosen []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	var survivors []string
	passed := map[selection]bool{} // on norn as it is
	fmt.Printf("%-64s %7s  %s\n", "mutant", "seconds", "caught by")
	for _, m := range mutants {
		if len(chosen) > 0 && !slices.ContainsFunc(chosen, func(part string) bool { return strings.Contains(m.name, part) }) {
			continue
		}
		if !passed[m.tests] {
			if output, err := m.tests.test(root); err != nil {
				return fmt.Errorf("the tests of %s fail on norn as it is: %w\n%s", m.tests.pkg, err, output)
			}
			passed[m.tests] = true
		}
		v, err := m.try(root)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if v.by == "" {
			survivors = append(survivors, m.name)
			v.by = "nobody"
		}
		fmt.Printf("%-64s %7.1f  %s\n", m.name, v.took.Seconds(), v.by)
	}
	if len(passed) == 0 {
		return fmt.Errorf("none has %s in its name", strings.Join(chosen, " or "))
	}
	if len(survivors) > 0 {
		return fmt.Errorf("not noticed: %s", strings.Join(survivors, ", "))
	}
	return nil
}
