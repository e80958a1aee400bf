package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/examples/transfer/input"
	"github.com/norn-go/norn/examples/transfer/run"
)

// program is the path of the program, built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	directory, err := os.MkdirTemp("", "transfer")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(directory) }()
	program = filepath.Join(directory, "transfer")
	if output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

// leaseName is the name of the lease under which the processes sweep.
const leaseName = "sweep"

// process is a running program. What it writes to standard error comes line by line.
type process struct {
	t       *testing.T
	command *exec.Cmd
	out     bytes.Buffer
	lines   chan string // closed when the process has closed its standard error
	said    []string    // the lines read so far
}

func launch(t *testing.T, arguments ...string) *process {
	t.Helper()
	p := &process{t: t, command: exec.Command(program, arguments...), lines: make(chan string, 1000)} // more than it has to say
	p.command.Stdout = &p.out
	p.command.Env = append(os.Environ(), "SAGA_DEADLINE_LEASE_TTL=1s", "SAGA_DEADLINE_POLLING_INTERVAL=300ms", "SAGA_DEADLINE_LEASE_NAME="+leaseName)
	stderr, err := p.command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// next waits for a line; false: the process has ended.
func (p *process) next() (string, bool) {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if ok {
			p.said = append(p.said, line)
		}
		return line, ok
	case <-p.t.Context().Done():
		p.t.Fatal("the test ended first")
	}
	return "", false
}

// until waits for a line that looks right, and reports whether there was one.
func (p *process) until(right func(line string) bool) bool {
	p.t.Helper()
	for {
		line, ok := p.next()
		if !ok || right(line) {
			return ok
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	err := p.command.Process.Signal(s)
	if err != nil {
		require.ErrorIs(p.t, err, os.ErrProcessDone)
	}
}

// wait waits for the end and returns the exit status, -1 after a signal.
func (p *process) wait() int {
	p.t.Helper()
	p.until(func(string) bool { return false })
	err := p.command.Wait()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(p.t, err, &exit)
	}
	return p.command.ProcessState.ExitCode()
}

// summary waits for a good end and reads what --json wrote.
func (p *process) summary() run.Summary {
	p.t.Helper()
	require.Equal(p.t, 0, p.wait(), "%v", p.said)
	return p.printed()
}

func (p *process) printed() (s run.Summary) {
	p.t.Helper()
	d := json.NewDecoder(&p.out)
	d.DisallowUnknownFields()
	require.NoError(p.t, d.Decode(&s))
	return s
}

// written is a file of orders.
func written(t *testing.T, orders []input.Order) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, input.Write(&text, orders))
	path := filepath.Join(t.TempDir(), "transfers.jsonl")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}
