package schema

import (
	"net/url"
	"strings"
)

// Redacted is a database URL without the values that may be secrets, for logs and errors. An "@" behind the host may be
// a part of a password that was not escaped: nothing of such a URL is shown, nor of what is no URL.
func Redacted(address string) string {
	if address == "" {
		return ""
	}
	scheme, rest, ok := strings.Cut(address, "://")
	base, query, asked := strings.Cut(address, "?")
	if scheme != "sqlite" {
		u, err := url.Parse(base)
		end := strings.IndexAny(rest, "/?#")
		if !ok || err != nil || end >= 0 && strings.Contains(rest[end:], "@") {
			return "(not shown)"
		}
		base = u.Redacted()
	}
	if !asked {
		return base
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if secretParameter(name) {
			parts[i] = name + "=xxxxx"
		}
	}
	return base + "?" + strings.Join(parts, "&")
}

func secretParameter(name string) bool {
	plain, err := url.QueryUnescape(strings.ToLower(name))
	if err != nil {
		return true
	}
	for _, word := range []string{"pass", "secret", "key", "token"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return false
}
