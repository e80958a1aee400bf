package saga

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/norn-go/norn/outbox"
	"github.com/norn-go/norn/schema"
)

// newCommands makes rows of the sent commands. Their ids follow from saga, message and position, so a
// retried attempt makes the same ones (SEMANTICS 1.18).
func (in *invocation) newCommands(a *attempt) ([]outbox.New, error) {
	var message string
	if in.event != nil {
		message = "event:" + in.event.ID
	} else {
		message = "deadline:" + in.due.Token
	}
	var news []outbox.New
	var errs []error
	for i, c := range a.buffers.commands {
		name, text, err := in.engine.encode(c.value)
		if err == nil {
			err = checkMetadata(c.metadata)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("command %d, %T: %w", i+1, c.value, err))
			continue
		}
		news = append(news, outbox.New{
			ID: schema.StableID(in.key.Type, in.key.ID, message, strconv.Itoa(i)), SagaType: in.key.Type, SagaID: in.key.ID,
			Type: name, Payload: text, Metadata: c.metadata, Created: a.at,
		})
	}
	return news, errors.Join(errs...)
}

func checkMetadata(m Metadata) error {
	for key, value := range m {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("metadata %q is not UTF-8", key)
		}
		if strings.HasPrefix(key, "$") {
			return fmt.Errorf("metadata %q: keys beginning with $ are reserved", key)
		}
	}
	return nil
}

func (e *Engine) encode(v any) (name, text string, err error) {
	name, text, err = e.types.Encode(v)
	if err == nil && len(text) > e.cfg.PayloadLimit {
		err = fmt.Errorf("%s of %d bytes is longer than %d", name, len(text), e.cfg.PayloadLimit)
	}
	return name, text, err
}
