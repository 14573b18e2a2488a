package manifest

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is one document of a stream: its content, nil if it is empty, or why it could not be read.
type document struct {
	content map[string]any
	err     error
}

// documents reads a stream of YAML documents, of JSON objects, or of JSON objects between separators (MRD-2). It ends
// after the last byte, or after the first error that leaves no way to find the next document.
func documents(stream []byte) iter.Seq[document] {
	return func(yield func(document) bool) {
		for part := range parts(stream) {
			if bytes.HasPrefix(bytes.TrimSpace(part), []byte("{")) {
				if objects, ok := jsonObjects(part); ok {
					for _, object := range objects {
						if !yield(object) {
							return
						}
					}
					continue
				}
			}
			if !yield(yamlDocument(part)) {
				return
			}
		}
	}
}

// parts splits a stream at its separators: lines that start with "---" and go on with nothing, a comment or content that
// belongs to the next document. No JSON value and no block scalar can contain such a line. Empty parts are left out.
func parts(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start := 0
		for lineStart := 0; lineStart < len(stream); {
			lineEnd := len(stream)
			if i := bytes.IndexByte(stream[lineStart:], '\n'); i >= 0 {
				lineEnd = lineStart + i + 1
			}
			line := stream[lineStart:lineEnd]
			if rest, ok := bytes.CutPrefix(line, []byte("---")); ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0) {
				if lineStart > start && !yield(stream[start:lineStart]) {
					return
				}
				start = lineStart + len("---")
				if trimmed := bytes.TrimSpace(rest); len(trimmed) == 0 || trimmed[0] == '#' {
					start = lineEnd
				}
			}
			lineStart = lineEnd
		}
		if start < len(stream) {
			yield(stream[start:])
		}
	}
}

// jsonObjects reads JSON objects that follow one another. It is not ok when at most one object came before an error: then
// the part may be YAML in flow style.
func jsonObjects(part []byte) ([]document, bool) {
	var result []document
	decoder := stdjson.NewDecoder(bytes.NewReader(part))
	for {
		var raw stdjson.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return result, true
		}
		if err != nil {
			if len(result) <= 1 {
				return nil, false
			}
			return append(result, document{err: fmt.Errorf("invalid JSON at byte %d of the document stream", decoder.InputOffset())}), true
		}
		result = append(result, jsonDocument(raw))
	}
}

func yamlDocument(part []byte) document {
	raw, err := yaml.YAMLToJSON(part)
	if err != nil {
		return document{err: redact(err)}
	}
	if bytes.HasPrefix(bytes.TrimSpace(part), []byte("{")) && !endsAfterOneDocument(part) {
		return document{err: errors.New("document is followed by something that belongs to no document")}
	}
	return jsonDocument(raw)
}

// endsAfterOneDocument says whether nothing but comments follows a document in flow style; the parser would silently leave
// out what does, such as one brace too many (MRB-1).
func endsAfterOneDocument(part []byte) bool {
	decoder := goyaml.NewDecoder(bytes.NewReader(part))
	var first, second any
	return decoder.Decode(&first) == nil && errors.Is(decoder.Decode(&second), io.EOF)
}

// jsonDocument decodes one JSON value; integers stay exact (MRB-7).
func jsonDocument(raw []byte) document {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return document{}
	case raw[0] == '[':
		return document{err: errors.New("document is a list, want a mapping")}
	case raw[0] != '{':
		return document{err: errors.New("document is a scalar, want a mapping")}
	}
	content := map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return document{err: errors.New("document is not valid JSON")}
	}
	if err := checkDepth(content, maxDepth); err != nil {
		return document{err: err}
	}
	return document{content: content}
}

var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|'[^']{4,}'")

// redact removes from a parser's message what it quotes: it may come from a Secret.
func redact(err error) error {
	return errors.New(quoted.ReplaceAllString(err.Error(), "…"))
}
