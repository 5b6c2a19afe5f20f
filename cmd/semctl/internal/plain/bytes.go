package plain

import (
	"encoding/json"
	"unicode/utf8"
)

// Bytes is a name, holder or label: any bytes. In JSON it is a string, or where that would lose bytes
// {"base64": "…"}.
type Bytes string

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return json.Marshal(string(b))
	}
	return json.Marshal(map[string][]byte{"base64": []byte(b)})
}
