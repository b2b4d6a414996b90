package expr

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// jsonItem is an element of a JSON array: the text of a string or number, or the JSON text of anything nested.
type jsonItem struct {
	text string
	null bool
	kind byte // 's' string, 'n' number, 'b' boolean, 'j' nested, '0' null
}

// jsonItems splits a JSON array. ok is false where text is no JSON array.
func jsonItems(text []byte) (items []jsonItem, ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '[' {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, false
		}
		it, ok := jsonScalar(raw)
		if !ok {
			return nil, false
		}
		items = append(items, it)
	}
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	if _, err := dec.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return nil, false
	}
	return items, true
}

// jsonScalar reads one JSON value.
func jsonScalar(raw []byte) (jsonItem, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || !json.Valid(raw) {
		return jsonItem{}, false
	}
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return jsonItem{}, false
		}
		return jsonItem{text: s, kind: 's'}, true
	case 'n':
		return jsonItem{null: true, kind: '0'}, true
	case 't':
		return jsonItem{text: "1", kind: 'b'}, true
	case 'f':
		return jsonItem{text: "0", kind: 'b'}, true
	case '[', '{':
		return jsonItem{text: string(raw), kind: 'j'}, true
	}
	return jsonItem{text: strings.TrimSpace(string(raw)), kind: 'n'}, true
}
