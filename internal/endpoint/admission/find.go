package admission

import (
	"bytes"
	"encoding/json"
)

// The functions below find values in JSON without decoding their surroundings. They are for text that has been decoded once, so that it is known
// to be valid; of anything else they return something, without a panic.

// member returns the value of a key in an object as it is written; of a key that is there twice, the last one, as decoders do.
func member(object []byte, key string) (value []byte, found bool) {
	eachMember(object, func(quoted, v []byte) {
		if named(quoted, key) {
			value, found = v, true
		}
	})
	return value, found
}

// keysOf returns the keys of an object. Use it, not member, to look for many keys: that reads the object for each.
func keysOf(object []byte) map[string]bool {
	all := map[string]bool{}
	eachMember(object, func(quoted, _ []byte) {
		var key string
		if bytes.IndexByte(quoted, '\\') < 0 && len(quoted) >= 2 {
			key = string(quoted[1 : len(quoted)-1])
		} else if json.Unmarshal(quoted, &key) != nil {
			return
		}
		all[key] = true
	})
	return all
}

// named reports whether a key as it is written is this one.
func named(quoted []byte, key string) bool {
	if len(quoted) < 2 {
		return false
	}
	plain := quoted[1 : len(quoted)-1]
	for _, c := range plain {
		if c == '\\' {
			var text string
			return json.Unmarshal(quoted, &text) == nil && text == key
		}
	}
	return string(plain) == key
}

func eachMember(object []byte, visit func(key, value []byte)) {
	at := space(object, 0)
	if at >= len(object) || object[at] != '{' {
		return
	}
	for at = space(object, at+1); at < len(object) && object[at] == '"'; {
		start := at
		at = text(object, at)
		key := object[start:at]
		at = space(object, space(object, at)+1) // The colon.
		start = min(at, len(object))
		at = skip(object, start)
		visit(key, object[start:at])
		if at = space(object, at); at >= len(object) || object[at] != ',' {
			return
		}
		at = space(object, at+1)
	}
}

// elements returns the elements of a list as they are written; nil if it is none.
func elements(list []byte) [][]byte {
	at := space(list, 0)
	if at >= len(list) || list[at] != '[' {
		return nil
	}
	var all [][]byte
	for at = space(list, at+1); at < len(list) && list[at] != ']'; {
		start := at
		at = skip(list, at)
		all = append(all, list[start:at])
		if at = space(list, at); at >= len(list) || list[at] != ',' {
			break
		}
		at = space(list, at+1)
	}
	return all
}

// space returns where the space at a place ends.
func space(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\n' || raw[at] == '\t' || raw[at] == '\r') {
		at++
	}
	return at
}

// text returns where the text that begins at a place ends.
func text(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}

// skip returns where the value at a place ends.
func skip(raw []byte, at int) int {
	depth := 0
	for at < len(raw) {
		switch raw[at] {
		case '"':
			if at = text(raw, at); depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return at
}
