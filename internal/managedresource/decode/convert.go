package decode

import (
	stdjson "encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/json"
)

// refusal is the reason why a value is not decoded. It never includes messages of a parser or a decompressor, which
// may quote content of a Secret.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	errBrotli      refusal = "brotli: the value is no Brotli stream, is cut off, or goes on after its end"
	errBrotliEmpty refusal = "brotli: value is empty"
	errNotUTF8     refusal = "document is not UTF-8"
	errGoesOn      refusal = "document is followed by something that belongs to no document"
	errKey         refusal = "document has a mapping with a key that is no text, integer, number or boolean"
	errSameKeys    refusal = `document has a mapping with keys that are the same in JSON, as 1 and "1" are`
	errBinary      refusal = "document has !!binary data that is not UTF-8; write text, in base64 where that is expected"
	errNumber      refusal = "document has a number that JSON does not have"
	errNoJSON      refusal = "document is not valid JSON"
	errList        refusal = "document is a list, want a mapping"
	errScalar      refusal = "document is a scalar, want a mapping"
)

// converter converts values of the YAML parser to the values of the same document in JSON. It visits all values
// before it reports an error: the order of mappings is random, and the same document must always have the same error.
type converter struct {
	key, sameKeys, binary, number bool
}

func (c *converter) err() error {
	switch {
	case c.key:
		return errKey
	case c.sameKeys:
		return errSameKeys
	case c.binary:
		return errBinary
	case c.number:
		return errNumber
	}
	return nil
}

// convert converts lists in place.
func (c *converter) convert(value any) any {
	switch value := value.(type) {
	case nil, bool:
		return value
	case int:
		return int64(value)
	case string:
		// The parser checked the text, but not the values that it decoded from escapes or base64.
		c.binary = c.binary || !utf8.ValidString(value)
		return value
	case []any:
		for i := range value {
			value[i] = c.convert(value[i])
		}
		return value
	case map[any]any:
		return c.mapping(value)
	default:
		return c.convertNumber(value)
	}
}

// mapping converts the keys to strings. It refuses keys that are the same in JSON only, because it is unknown which
// of them is the last. The parser has already dropped all but the last of keys that are the same in YAML.
func (c *converter) mapping(value map[any]any) map[string]any {
	result := make(map[string]any, len(value))
	for key, v := range value {
		text, ok := keyText(key)
		_, found := result[text]
		c.key = c.key || !ok
		c.sameKeys = c.sameKeys || ok && found
		c.binary = c.binary || !utf8.ValidString(text)
		result[text] = c.convert(v)
	}
	return result
}

// keyText returns a key as a string, in the notation of YAML.
func keyText(key any) (string, bool) {
	switch key := key.(type) {
	case string:
		return key, true
	case int, int64, bool:
		return fmt.Sprint(key), true
	case float64:
		text, err := goyaml.Marshal(float32(key)) // Kubernetes rounds keys.
		return strings.TrimSpace(string(text)), err == nil
	}
	return "", false
}

// convertNumber converts numbers through JSON, which decides which of them are integers.
func (c *converter) convertNumber(value any) (number any) {
	raw, err := stdjson.Marshal(value)
	if err != nil || json.Unmarshal(raw, &number) != nil {
		c.number = true
	}
	return number
}
