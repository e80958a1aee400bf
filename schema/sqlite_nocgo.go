//go:build !cgo

package schema

import _ "github.com/mattn/go-sqlite3" // says itself that it cannot work without cgo

func codeInField(error) int { return 0 }
