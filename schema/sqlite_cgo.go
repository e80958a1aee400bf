//go:build cgo

package schema

import (
	"cmp"
	"errors"

	"github.com/mattn/go-sqlite3"
)

// codeInField is where mattn/go-sqlite3 keeps what other drivers tell by a method.
func codeInField(err error) int {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return 0
	}
	return cmp.Or(int(e.ExtendedCode), int(e.Code))
}
