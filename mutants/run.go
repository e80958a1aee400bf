package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// most is how long a mutant's tests may take to notice it.
const most = time.Minute

// verdict is what became of one mutant.
type verdict struct {
	by   string // the test that noticed; empty: none did
	took time.Duration
}

// try runs the mutant's tests on the sources below root, broken by its edits.
func (m mutant) try(root string) (v verdict, err error) {
	directory, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	path, err := m.overlay(root, directory)
	if err != nil {
		return v, err
	}
	began := time.Now()
	output, failed := m.tests.test(root, "-overlay", path)
	v.took = time.Since(began)
	if failed == nil {
		return v, nil
	}
	if v.by = culprit(output); v.by == "" {
		return v, fmt.Errorf("no test failed, but go test did: %w\n%s", failed, output)
	}
	return v, nil
}

// test runs the selected tests. A script that fails is not shrunk: that it fails is enough.
func (s selection) test(root string, flags ...string) (output string, err error) {
	args := append([]string{"test", "-count=1", "-vet=off", "-failfast", "-timeout", most.String()}, flags...)
	args = append(args, "-run", s.run, s.pkg)
	command := exec.Command("go", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "RAPID_NOFAILFILE=1", "RAPID_SHRINKTIME=1ms")
	text, err := command.CombinedOutput()
	return string(text), err
}

var (
	failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	crash   = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
)

// culprit is the innermost test that failed first, or what ended the whole test run.
func culprit(output string) string {
	if strings.Contains(output, "[build failed]") {
		return ""
	}
	var by string
	for _, match := range failure.FindAllStringSubmatch(output, -1) {
		if by != "" && !strings.HasPrefix(match[1], by+"/") {
			break
		}
		by = match[1]
	}
	if match := crash.FindStringSubmatch(output); by == "" && match != nil {
		return match[1]
	}
	return by
}
