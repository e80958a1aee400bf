package schema

import "strings"

// Excerpt is an error's text as it is stored with a failing row: valid UTF-8 without NUL, at most
// 8 KiB.
func Excerpt(err error) string {
	const most = 8 << 10
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "␀")
}
