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

// buffers are reused for one value after the other.
type buffers struct {
	brotli brotli.Reader
	reader bufio.Reader
	text   []byte
}

// open returns the plain text of a value.
func (b *buffers) open(key string, value []byte) (io.Reader, error) {
	switch {
	case !strings.HasSuffix(key, resourcesv1alpha1.BrotliSuffix):
		return bytes.NewReader(value), nil
	case len(value) == 0:
		return nil, errBrotliEmpty
	}
	_ = b.brotli.Reset(bytes.NewReader(value)) // It never fails.
	return &b.brotli, nil
}

// size is a document's share of the budget.
type size struct{ nodes, bytes int }

// expansion is the size of a document with its aliases expanded, or the error of measuring it.
type expansion struct {
	boundedyaml.Size
	err error
}

// expand counts no further than one more than a document may have.
func expand(document []byte) expansion {
	all, err := boundedyaml.Expand(document,
		boundedyaml.Size{Nodes: maxDocumentNodes, Bytes: maxDocumentBytes, Depth: maxDepth})
	return expansion{all, err}
}

// part is the text between two separators: a YAML document, or JSON objects. It is valid until the next part.
type part struct {
	text []byte
	// line is the number of the first line, from 1.
	line int
	// err is set if the text could not be read to its end, or is too large.
	err error
	// expanded is the expansion of a YAML document with aliases; zero if it has none.
	expanded expansion
	// goesOn is set if no separator follows. Such a part holds JSON objects and nothing else, and so does the one
	// after it.
	goesOn bool
	// before is the number of bytes between the last separator and the part, if one that goesOn was before it.
	before int
	// broken is set after an error in JSON objects: the rest up to the next separator is skipped.
	broken bool
}

func (p *part) isJSON() bool {
	return p.before > 0 || bytes.HasPrefix(bytes.TrimSpace(p.text), []byte("{"))
}

// size returns the part of it that is parsed. Of a YAML document with too many nodes none is; text that looks like
// JSON may be any number of documents, and if it turns out to be YAML, its nodes are counted again then.
func (p *part) size() size {
	nodes := 0
	if p.isJSON() {
		nodes = boundedyaml.JSONNodes(p.text)
	} else {
		nodes = min(boundedyaml.YAMLNodes(p.text), maxDocumentNodes)
	}
	return size{nodes: max(nodes, min(p.expanded.Nodes, maxDocumentNodes)), bytes: max(len(p.text), p.expanded.Bytes)}
}

// hasAliases reports whether it may be a YAML document with aliases that is parsed.
func (p *part) hasAliases() bool {
	return !p.goesOn && p.before == 0 && boundedyaml.MayHaveAliases(p.text) &&
		boundedyaml.YAMLNodes(p.text) <= maxDocumentNodes && utf8.Valid(p.text)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parts splits a stream at its separators: lines that start with "---" and go on with nothing, a comment or content
// that belongs to the next document. No JSON value and no block scalar can contain such a line. JSON objects that are
// too large for one part are split between objects, too. Empty parts are left out.
//
// It is one loop over chunks whose state is five variables; two functions would hand all of them to each other.
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

// handOver yields the complete JSON objects, if there are any, and keeps the rest. It returns the result of yield.
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

// completeObjects returns where the last JSON value ends that is complete; 0 if none is.
func completeObjects(text []byte) int {
	end := 0
	for offset, open := range boundedyaml.Brackets(text) {
		if closing := text[offset] == '}' || text[offset] == ']'; closing && open == 0 {
			end = offset + 1
		}
	}
	return end
}

// separator reports whether a line separates documents, and returns what of it belongs to the next one.
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

// blank reports whether a line surely holds nothing but a comment.
func blank(line []byte) bool {
	text := bytes.TrimLeft(line, " \t\r\n")
	if len(text) == 0 || text[0] != '#' {
		return len(text) == 0
	}
	text, whole := bytes.CutSuffix(text, []byte("\n"))
	return whole && !bytes.ContainsAny(bytes.TrimSuffix(text, []byte("\r")), otherEnds)
}

// otherEnds are the line breaks that only YAML knows.
const otherEnds = "\r\u0085\u2028\u2029"

// document is one document of a stream: its content, nil if it is empty, or why it could not be read.
type document struct {
	content map[string]any
	err     error
}

// documents reads the documents of a part.
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
			// It was counted as JSON, and is YAML in flow style.
			left.nodes -= min(boundedyaml.YAMLNodes(p.text), maxDocumentNodes)
		}
		if left.nodes < 0 {
			yield(document{err: errNodes})
			return
		}
		yield(p.yamlDocument())
	}
}

// jsonObjects reads JSON objects that follow one another. It is not ok when at most one object came before an error:
// then the part may be YAML in flow style, which is not split.
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

// checkText refuses a YAML document that is too large or too dense, without following its aliases. The parser would
// take UTF-16, too, in which nothing can be counted.
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
		// The size is unknown. If the other parser finds a fault of syntax, its error explains why the document cannot
		// be parsed.
		return cmp.Or(p.checkSyntax(), p.invalid(p.expanded.err))
	}
	return nil
}

// place matches what the YAML parser itself puts before its messages.
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

// hasMark reports whether there is a mark between documents that did not separate parts: the end of a document, or any
// mark after one of otherEnds.
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

// mayGoOn reports whether something may follow a document that is not null, without parsing it. A mapping whose first
// key stands at the beginning of its line goes on to the next mark: all that follows is part of it, or an error at
// which the parser stops.
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

// checkSyntax refuses text that is no YAML, and more than one document with comments after it; the parser would
// silently leave out the rest, such as one brace too many (MRB-1).
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

// unread takes any document and nothing of it: only its syntax counts, and no alias is followed.
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
