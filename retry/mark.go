package retry

import "errors"

// Permanent marks an error that no further attempt would mend: the work is parked at once.
func Permanent(err error) error { return mark(err, permanent) }

// Uncounted marks an error that says nothing about the work, such as a lost connection or a
// shutdown: it costs no attempt and the work stays as it is.
func Uncounted(err error) error { return mark(err, uncounted) }

// IsPermanent reports whether err or one it wraps is marked by [Permanent].
func IsPermanent(err error) bool { return marked(err, permanent) }

// IsUncounted reports whether err or one it wraps is marked by [Uncounted].
func IsUncounted(err error) bool { return marked(err, uncounted) }

type kind int

const (
	permanent kind = iota
	uncounted
)

type markedError struct {
	error
	kind kind
}

func (m markedError) Unwrap() error { return m.error }

func mark(err error, k kind) error {
	if err == nil {
		return nil
	}
	return markedError{err, k}
}

func marked(err error, k kind) bool {
	var m markedError
	for errors.As(err, &m) {
		if m.kind == k {
			return true
		}
		err = m.error
	}
	return false
}
