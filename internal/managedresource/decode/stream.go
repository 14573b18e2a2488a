package decode

import (
	"bufio"
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/json"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// buffers are reused for all values.
type buffers struct {
	brotli brotli.Reader
	reader bufio.Reader
	text   []byte
}

// open returns a reader of the decompressed text of a value.
func (b *buffers) open(key string, value []byte) (io.Reader, error) {
	switch {
	case !strings.HasSuffix(key, resourcesv1alpha1.BrotliSuffix):
		return bytes.NewReader(value), nil
	case len(value) == 0:
		return nil, errBrotliEmpty
	}
	_ = b.brotli.Reset(bytes.NewReader(value)) // Reset never returns an error here.
	return &b.brotli, nil
}

// size is the share of a document in the budget.
type size struct{ nodes, bytes int }

// expansion is the size of a document with its aliases expanded, or the error of measuring it.
type expansion struct {
	boundedyaml.Size
	err error
}

// expand measures a document with its aliases expanded. It stops counting one above the limit of a document.
func expand(document []byte) expansion {
	all, err := boundedyaml.Expand(document,
		boundedyaml.Size{Nodes: maxDocumentNodes, Bytes: maxDocumentBytes, Depth: maxDepth})
	return expansion{all, err}
}

// part is the text between two separators: a YAML document, or JSON objects. It is valid until the next part.
type part struct {
	text []byte
	// line is the number of the first line in the value, from 1.
	line int
	// err is set if the text could not be read to its end, or is too large.
	err error
	// expanded is the expansion of a YAML document with aliases; zero if there are no aliases.
	expanded expansion
	// goesOn is set if the text continues in the next part without a separator. Both parts then have JSON objects
	// only.
	goesOn bool
	// before is the number of bytes between the last separator and the part, if they were yielded as an earlier part.
	before int
	// broken is set after an error in JSON objects: the text up to the next separator is skipped.
	broken bool
}

func (p *part) isJSON() bool {
	return p.before > 0 || bytes.HasPrefix(bytes.TrimSpace(p.text), []byte("{"))
}

// size returns the size of the text that will be parsed. A YAML document with too many nodes is never parsed. Text
// that looks like JSON may have any number of documents; if it is YAML after all, its nodes are counted again then.
func (p *part) size() size {
	nodes := 0
	if p.isJSON() {
		nodes = boundedyaml.JSONNodes(p.text)
	} else {
		nodes = min(boundedyaml.YAMLNodes(p.text), maxDocumentNodes)
	}
	return size{nodes: max(nodes, min(p.expanded.Nodes, maxDocumentNodes)), bytes: max(len(p.text), p.expanded.Bytes)}
}

// hasAliases reports whether the part may be a YAML document with aliases that will be parsed.
func (p *part) hasAliases() bool {
	return !p.goesOn && p.before == 0 && boundedyaml.MayHaveAliases(p.text) &&
		boundedyaml.YAMLNodes(p.text) <= maxDocumentNodes && utf8.Valid(p.text)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parts splits a stream at its separators: lines that start with "---", followed by nothing, a comment, or content of
// the next document. No JSON value and no block scalar can contain such a line. JSON that is too large for one part
// is also split between objects. Empty parts are left out.
//
// It is one loop over chunks, because two functions would have to share all of its five variables.
func (b *buffers) parts(stream io.Reader) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		reader := &b.reader
		reader.Reset(stream)
		if start, _ := reader.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
			_, _ = reader.Discard(len(byteOrderMark))
		}
		current := part{line: 1, text: b.text[:0]}
		defer func() { b.text = current.text }()
		atLineStart, line := true, 1
		for {
			chunk, err := reader.ReadSlice('\n')
			if atLineStart {
				if rest, found := separator(chunk); found {
					if !current.empty() && !yield(&current) {
						return
					}
					current = part{text: current.text[:0], line: line}
					chunk = rest
					if len(chunk) == 0 {
						current.line++
					}
				}
			}
			if !current.fits(chunk) && current.isJSON() && !current.handOver(yield) {
				return
			}
			current.add(chunk)
			atLineStart = !errors.Is(err, bufio.ErrBufferFull)
			if atLineStart {
				line++
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				if !errors.Is(err, io.EOF) {
					current.err = errBrotli
				}
				if !current.empty() {
					yield(&current)
				}
				return
			}
		}
	}
}

func (p *part) empty() bool { return len(p.text) == 0 && p.err == nil }

func (p *part) fits(chunk []byte) bool { return len(p.text)+len(chunk) <= maxDocumentBytes }

func (p *part) add(chunk []byte) {
	switch {
	case p.broken:
	case !p.fits(chunk):
		p.text, p.err = p.text[:0], errTooLarge
	case p.err == nil:
		p.text = append(p.text, chunk...)
	}
}

// handOver yields the complete JSON objects, if there are any, and keeps the rest of the text. It returns the result
// of yield.
func (p *part) handOver(yield func(*part) bool) bool {
	end := completeObjects(p.text)
	if end == 0 {
		return true
	}
	complete := *p
	complete.text, complete.goesOn = p.text[:end], true
	if !yield(&complete) {
		return false
	}
	rest := p.text[end:]
	if complete.broken {
		rest = nil
	}
	*p = part{
		text: append(p.text[:0], rest...), line: p.line + bytes.Count(complete.text, []byte("\n")), before: p.before + end,
		broken: complete.broken,
	}
	return true
}

// completeObjects returns the end of the last complete JSON value; 0 if there is none.
func completeObjects(text []byte) int {
	end := 0
	for offset, open := range boundedyaml.Brackets(text) {
		if closing := text[offset] == '}' || text[offset] == ']'; closing && open == 0 {
			end = offset + 1
		}
	}
	return end
}

// separator reports whether a line separates documents, and returns the part of the line that belongs to the next
// document.
func separator(line []byte) ([]byte, bool) {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	if !found || len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[0]) < 0 {
		return nil, false
	}
	if blank(rest) {
		return nil, true
	}
	return rest, true
}

// blank reports whether a line certainly has nothing but a comment.
func blank(line []byte) bool {
	text := bytes.TrimLeft(line, " \t\r\n")
	if len(text) == 0 || text[0] != '#' {
		return len(text) == 0
	}
	text, whole := bytes.CutSuffix(text, []byte("\n"))
	return whole && !bytes.ContainsAny(bytes.TrimSuffix(text, []byte("\r")), otherEnds)
}

// otherEnds are the line breaks of YAML that no other format has.
const otherEnds = "\r\u0085\u2028\u2029"

// document is one document of a stream: its content, nil if it is empty, or the error of reading it.
type document struct {
	content map[string]any
	err     error
}

func (p *part) documents(left *budget) iter.Seq[document] {
	return func(yield func(document) bool) {
		if p.err != nil {
			yield(document{err: p.err})
			return
		}
		if p.isJSON() {
			if objects, ok := p.jsonObjects(); ok {
				for _, object := range objects {
					if !yield(object) {
						return
					}
				}
				return
			}
			// It was counted as JSON, but is YAML in flow style.
			left.nodes -= min(boundedyaml.YAMLNodes(p.text), maxDocumentNodes)
		}
		if left.nodes < 0 {
			yield(document{err: errNodes})
			return
		}
		yield(p.yamlDocument())
	}
}

// jsonObjects reads JSON objects that follow one another. It returns false if an error follows at most one object:
// the part may then be YAML in flow style, which is not split.
func (p *part) jsonObjects() ([]document, bool) {
	var result []document
	decoder := stdjson.NewDecoder(bytes.NewReader(p.text))
	for {
		var raw stdjson.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return result, true
		}
		if err != nil {
			few := len(result) <= 1 && p.before == 0
			if few && !p.goesOn {
				return nil, false
			}
			p.broken = true
			if few {
				return []document{{err: errTooLarge}}, true
			}
			return append(result, document{err: fmt.Errorf("invalid JSON at byte %d of the document stream",
				int64(p.before)+decoder.InputOffset())}), true
		}
		switch {
		case !utf8.Valid(raw):
			result = append(result, document{err: errNotUTF8}) // The decoder would silently replace invalid bytes.
		case boundedyaml.JSONNodes(raw) > maxDocumentNodes:
			result = append(result, document{err: errTooDense})
		default:
			result = append(result, jsonDocument(raw))
		}
	}
}

func (p *part) yamlDocument() document {
	if err := p.checkText(); err != nil {
		return document{err: err}
	}
	var parsed any
	if err := goyaml.Unmarshal(p.text, &parsed); err != nil {
		return document{err: p.invalid(err)}
	}
	if parsed == nil || mayGoOn(p.text) {
		if err := p.checkSyntax(); err != nil {
			return document{err: err}
		}
	}
	var c converter
	value := c.convert(parsed)
	if err := c.err(); err != nil {
		return document{err: err}
	}
	return newDocument(value)
}

// checkText refuses a YAML document that is too large or has too many nodes, without expanding its aliases. It
// refuses UTF-16, which the parser accepts, because nothing can be counted in it.
func (p *part) checkText() error {
	switch {
	case !utf8.Valid(p.text):
		return errNotUTF8
	case len(p.text)+boundedyaml.JSONGrowth(p.text) > maxDocumentBytes:
		return errTooLarge
	case boundedyaml.YAMLNodes(p.text) > maxDocumentNodes || p.expanded.Nodes > maxDocumentNodes:
		return errTooDense
	case p.expanded.Bytes > maxDocumentBytes:
		return errTooLarge
	case p.expanded.Depth > maxDepth:
		return errTooDeep
	case p.expanded.err != nil:
		// The size is unknown. A syntax error of the other parser, if there is one, explains better why the document
		// cannot be parsed.
		return cmp.Or(p.checkSyntax(), p.invalid(p.expanded.err))
	}
	return nil
}

// place matches the prefix of the messages of the YAML parser.
var place = regexp.MustCompile(`^yaml: (?:unmarshal errors:\n  )?line ([0-9]{1,9}): `)

// invalid returns an error with the place at which the YAML parser stopped.
func (p *part) invalid(err error) error {
	if match := place.FindStringSubmatch(err.Error()); match != nil {
		if line, err := strconv.Atoi(match[1]); err == nil {
			return fmt.Errorf("invalid YAML at line %d of the value", p.line+line-1)
		}
	}
	return fmt.Errorf("invalid YAML in the document that begins at line %d of the value", p.line)
}

// hasMark reports whether the text has a mark between documents that did not separate parts: the end of a document,
// or any mark after one of otherEnds.
func hasMark(part []byte) bool {
	for _, mark := range []string{"---", "..."} {
		for at := 0; ; at += len(mark) {
			next := bytes.Index(part[at:], []byte(mark))
			if next < 0 {
				break
			}
			at += next
			before, _ := utf8.DecodeLastRune(part[:at])
			if at == 0 || before == '\n' || strings.ContainsRune(otherEnds, before) {
				return true
			}
		}
	}
	return false
}

// mayGoOn reports whether another document may follow the first one, without parsing it. A mapping whose first key is
// at the beginning of a line continues to the next mark: the parser reports anything else as an error.
func mayGoOn(part []byte) bool {
	if hasMark(part) {
		return true
	}
	for line := range bytes.Lines(part) {
		if blank(line) {
			continue
		}
		first := line[0]
		return first != '"' && first != '\'' && first != '_' && (first < '0' || first > '9') &&
			(first|0x20 < 'a' || first|0x20 > 'z')
	}
	return false
}

// checkSyntax refuses text that is no YAML, and text with more than one document. The parser would silently ignore
// everything after the first one, such as one brace too many (MRB-1).
func (p *part) checkSyntax() error {
	decoder := goyaml.NewDecoder(bytes.NewReader(p.text))
	if err := decoder.Decode(&unread{}); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return p.invalid(err)
	}
	if err := decoder.Decode(&unread{}); !errors.Is(err, io.EOF) {
		return errGoesOn
	}
	return nil
}

// unread decodes nothing: only the syntax of a document is checked, and no alias is expanded.
type unread struct{}

// UnmarshalYAML implements yaml.Unmarshaler.
func (*unread) UnmarshalYAML(func(any) error) error { return nil }

// jsonDocument decodes one JSON value; integers stay exact (MRB-7).
func jsonDocument(raw []byte) document {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return document{err: errNoJSON}
	}
	return newDocument(value)
}

func newDocument(value any) document {
	switch value := value.(type) {
	case nil:
		return document{}
	case map[string]any:
		if err := checkDepth(value, maxDepth); err != nil {
			return document{err: err}
		}
		return document{content: value}
	case []any:
		return document{err: errList}
	default:
		return document{err: errScalar}
	}
}
