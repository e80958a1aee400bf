package sagatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/norn-go/norn/deadline"
	"github.com/norn-go/norn/saga"
)

// stamp is a time as it stands in failures.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.999999") }

// String is the pair as it stands in failures.
func (a Association) String() string { return fmt.Sprintf("%s=%s", a.Property, a.Value) }

// text is a command without its id; its metadata only if they are asked for.
func (c command) text(metadata bool) string {
	text := c.Type + " " + c.Payload
	if metadata && c.Metadata != nil {
		text += " " + metadataText(c.metadata())
	}
	return text
}

// metadataText is metadata as JSON, sorted by key.
func metadataText(m saga.Metadata) string {
	if len(m) == 0 {
		return "{}"
	}
	text, _ := json.Marshal(m) // strings always encode
	return string(text)
}

func pendingText(d deadline.Pending) string {
	return deadlineText(d.Name, d.Due.Time, d.PayloadType, d.Payload)
}

func deadlineText(name string, due time.Time, payloadType, payload *string) string {
	text := name + " due " + stamp(due)
	if payload != nil {
		text += " with " + *payloadType + " " + *payload
	}
	return text
}

// described is an event as it stands in the history.
func described(event any) string {
	text, err := json.Marshal(event)
	if err != nil {
		return fmt.Sprintf("%T %+v", event, event)
	}
	return fmt.Sprintf("%T %s", event, text)
}

// texts are errors without the stacks of panics, each text once.
func texts(errs []error) string {
	times := map[string]int{}
	var order []string
	for _, err := range errs {
		text, _, _ := strings.Cut(err.Error(), "\ngoroutine ")
		if times[text]++; times[text] == 1 {
			order = append(order, text)
		}
	}
	for i, text := range order {
		if n := times[text]; n > 1 {
			order[i] = fmt.Sprintf("%s (%d times)", text, n)
		}
	}
	return strings.Join(order, "\n")
}
