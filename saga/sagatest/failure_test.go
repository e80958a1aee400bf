package sagatest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
	"github.com/norn-go/norn/saga/sagatest"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("NORN_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got+"\n")
}

func TestFailuresShowExpectedBesideActualAndTheHistoryGolden(t *testing.T) {
	timers := Timers{"t": refuse, "u": func(h Hands) error { h.End(); return nil }}
	start := Begin{ID: "1", do: func(h Hands) error {
		h.Send(Note{"begun"}, saga.WithMetadata(saga.Metadata{"tenant": "blue"}))
		h.Schedule("u", 2*time.Hour)
		h.Schedule("parcel", 3*time.Hour, deadline.WithPayload(Parcel{7}))
		h.Add("tag", "x")
		return nil
	}}
	for name, body := range map[string]func(f *sagatest.Fixture[Probe]){
		"commands": func(f *sagatest.Fixture[Probe]) {
			f.Given(start)
			f.When(Move{ID: "1", do: func(h Hands) error { h.Send(Note{"a"}); h.Send(Note{"b"}); return nil }})
			f.ExpectCommands(Note{"a"}, Note{"c"}, Order{"d"})
		},
		"deadlines": func(f *sagatest.Fixture[Probe]) {
			f.Given(start)
			f.GivenTimePasses(time.Hour)
			f.When(Move{ID: "1", do: func(h Hands) error { h.Schedule("t", time.Minute); h.Cancel("parcel"); return nil }})
			f.ExpectOnlyDeadlines(sagatest.After("u", time.Hour), sagatest.After("t", time.Second), sagatest.After("parcel", time.Hour, deadline.WithPayload(Parcel{8})))
			f.ExpectDeadline(sagatest.After("t", time.Minute, deadline.WithPublicID("mine")))
		},
		"life": func(f *sagatest.Fixture[Probe]) {
			f.GivenState("1", Probe{Text: "given"})
			f.GivenDeadline("t", time.Hour)
			f.GivenDeadline("u", time.Hour+20*time.Second)
			f.WhenTimePasses(time.Hour + 10*time.Second)
			f.ExpectParked("u")
			f.ExpectErrorIs(os.ErrNotExist)
			f.WhenRestarted()
			f.WhenTimeAdvancesTo(f.Now().Add(2 * time.Hour))
			f.ExpectOpen()
			f.ExpectState(Probe{Count: 2})
			f.ExpectCancelled()
			f.ExpectNothing()
		},
		"delivery": func(f *sagatest.Fixture[Probe]) {
			f.Given(start)
			f.When(Move{ID: "1", do: func(h Hands) error { h.Send(Order{"nobody's"}); h.Send(Note{"behind it"}); return nil }})
			f.WhenCommandsDelivered()
			f.ExpectCommands()
			f.ExpectAssociations(sagatest.Association{Property: "id", Value: "1"})
		},
		"unasked": func(f *sagatest.Fixture[Probe]) {
			f.When(Begin{ID: "1", do: refuse})
			f.ExpectNone()
		},
		"given": func(f *sagatest.Fixture[Probe]) {
			f.Given(start, Move{ID: "1", do: refuse})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var delivered []string
			recorded(t, func(t *testing.T, r *recorder) { golden(t, "failure-"+name, r.text()) }, body,
				probe(timers, sagatest.CommandHandler(deliver(&delivered)))...)
		})
	}
}

func TestMistakesOfRegistrationsAreNamedTogetherGolden(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		sagatest.Play(r, "", "probe", func(*sagatest.Fixture[Probe]) {},
			saga.Start((*Probe).OnBegin), saga.OnDeadline("t", (*Probe).OnParcel, saga.By("id")),
			42, (*saga.Definition)(nil), "probe", sagatest.On("oracle"), sagatest.Provide(nil),
			sagatest.StartAt(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)))
	}()
	<-done
	require.True(t, r.stopped)
	golden(t, "registrations", r.text())
}

func TestServicesThatAreNotProvidedAreNamed(t *testing.T) {
	recorded(t, func(t *testing.T, r *recorder) {
		require.True(t, r.stopped)
		for _, part := range []string{"wants a sagatest_test.Clock", "wants a *sagatest_test.Timers", "sagatest.Provide gives services to a test"} {
			require.Contains(t, r.text(), part)
		}
	}, func(*sagatest.Fixture[Probe]) { t.Error("the body ran") },
		saga.Start(func(*Probe, Begin, Clock) {}, saga.By("id")), saga.OnDeadline("t", (*Probe).OnTimer))
}

// failingEnv lets TestFailing fail, in a process of its own.
const failingEnv = "NORN_SAGATEST_FAILING"

func TestFailing(t *testing.T) {
	if os.Getenv(failingEnv) == "" {
		return
	}
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.ExpectEnded()
		f.Saga("1").ExpectCommands(Note{"a"})
		f.ExpectError("x")
		f.ExpectOnlyDeadlines(sagatest.After("t", 0))
		f.GivenDeadline("unknown", 0)
	}, probe(nil)...)
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.GivenState("1", Probe{})
		f.GivenDeadline("t", time.Hour)
		f.WhenTimePasses(2 * time.Hour)
	}, probe(Timers{"t": func(h Hands) error { h.Schedule("t", 0); return nil }})...)
	sagatest.Test(t, "probe", func(f *sagatest.Fixture[Probe]) {
		f.When(Begin{ID: "1", do: refuse})
		f.When(Begin{ID: "2"})
		f.ExpectCommands()
		f.Given(Begin{ID: "3"})
	}, probe(nil)...)
}

func TestFailureStandsAtTheLineOfTheTest(t *testing.T) {
	source, err := os.ReadFile("failure_test.go")
	require.NoError(t, err)
	command := exec.Command(os.Args[0], "-test.run=^TestFailing$")
	command.Env = append(os.Environ(), failingEnv+"=1")
	out, err := command.CombinedOutput()
	require.Error(t, err)
	var lines []string
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "failure_test.go:"); ok {
			number, _, _ := strings.Cut(rest, ":")
			lines = append(lines, number)
		}
	}
	require.Equal(t, linesOf(string(source), "f.ExpectEnded()", `f.Saga("1").ExpectCommands(Note{"a"})`, `f.ExpectError("x")`,
		`f.ExpectOnlyDeadlines(sagatest.After("t", 0))`, `f.GivenDeadline("unknown", 0)`, "f.WhenTimePasses(2 * time.Hour)", `f.Given(Begin{ID: "3"})`), lines, string(out))
}

// linesOf are the numbers of the lines that are these statements.
func linesOf(source string, statements ...string) (numbers []string) {
	for i, line := range strings.Split(source, "\n") {
		for _, statement := range statements {
			if strings.TrimSpace(line) == statement {
				numbers = append(numbers, strconv.Itoa(i+1))
			}
		}
	}
	return numbers
}
