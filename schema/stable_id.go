package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// StableID makes an id of 32 hexadecimal digits that follows from the parts alone: the same parts have the same id in
// every process, others another one, also where they are the same when written one behind the other.
func StableID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
