package schema

import (
	"regexp"
	"strings"
)

// lexeme is a piece of SQL of which only words and semicolons matter here: comments, quoted text and names, words,
// anything else.
var lexeme = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|\s+|[eE]'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"|` + "`[^`]*`" + `|\$\w*\$|\w+|.`)

// transactionControl returns the word that begins or ends a transaction in a text of one or more statements; empty:
// there is none. Savepoints are not meant.
func transactionControl(query string) string {
	begins, rollback, quoted := true, false, ""
	for _, l := range lexeme.FindAllString(query, -1) {
		switch {
		case quoted != "": // $tag$ … $tag$
			if l == quoted {
				quoted = ""
			}
			continue
		case strings.TrimSpace(l) == "", strings.HasPrefix(l, "--"), strings.HasPrefix(l, "/*"):
			continue
		case l == ";":
			if rollback {
				return "ROLLBACK"
			}
			begins = true
			continue
		case len(l) > 1 && l[0] == '$' && l[len(l)-1] == '$':
			quoted = l
		}
		word := strings.ToUpper(l)
		switch {
		case rollback && word == "TO":
			rollback = false
		case begins && word == "ROLLBACK":
			rollback = true
		case begins && word == "CREATE": // a trigger's body has a BEGIN and an END of its own
			return ""
		case begins && (word == "BEGIN" || word == "START" || word == "COMMIT" || word == "END" || word == "ABORT" || word == "PREPARE"):
			return word
		}
		begins = false
	}
	if rollback {
		return "ROLLBACK"
	}
	return ""
}
