package sagatest

import (
	"github.com/norn-go/norn/saga"
)

// WithMetadata is a command as [Scope.ExpectCommands] expects it, its metadata compared too.
func WithMetadata(command any, m saga.Metadata) any { return carrying{command, m} }

type carrying struct {
	command  any
	metadata saga.Metadata
}

// ExpectCommands expects that the act sent exactly these commands, in this order. They are compared as they are stored,
// by the name of their type and their encoded value. Their ids are left out, and their metadata unless [WithMetadata]
// gives them. Where several sagas were moved at once, the order is that of their ids.
func (s *Scope[S]) ExpectCommands(commands ...any) {
	s.stage.t.Helper()
	s.stage.expect()
	sent := s.sent()
	want, got := make([]string, len(commands)), make([]string, len(sent))
	for i, c := range sent {
		got[i] = c.text(false)
	}
	for i, expected := range commands {
		command, whole := expected.(carrying)
		if !whole {
			want[i] = s.stage.encoded(expected)
			continue
		}
		want[i] = s.stage.encoded(command.command) + " " + metadataText(command.metadata)
		if i < len(sent) {
			got[i] = sent[i].text(false) + " " + metadataText(sent[i].metadata())
		}
	}
	s.stage.compare("the commands that were sent are not those expected", want, got)
}

// ExpectNoCommands expects that the act sent none.
func (s *Scope[S]) ExpectNoCommands() {
	s.stage.t.Helper()
	s.ExpectCommands()
}

// sent are the act's commands of the scope.
func (s *Scope[S]) sent() []command {
	var sent []command
	for _, c := range s.stage.act.commands {
		if s.holds(c.key()) {
			sent = append(sent, c)
		}
	}
	return sent
}

// encoded is a value as it is stored, behind the name of its type. One that cannot be stored ends the test.
func (s *stage) encoded(v any) string {
	s.t.Helper()
	name, text, err := s.engine.Types().Encode(v)
	if err != nil {
		s.t.Fatalf("sagatest: an expected value cannot be stored: %v", err)
	}
	return name + " " + text
}
