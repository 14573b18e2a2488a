package decode

import (
	"context"
	"fmt"
	"io"
)

// All Secrets and keys of a ManagedResource share one budget. It is checked before anything is decoded, so that input
// that exceeds it is only streamed through a buffer. The limits of a document are checked before the document is
// parsed. Refused input therefore needs at most 64 MiB: the values, the window of Brotli (16 MiB), and one document
// with the memory of its parser.
const (
	// maxSecrets limits the number of Secrets: even with one object each, they need a thousand reads at every start.
	maxSecrets = 1000
	// maxValueBytes limits the values as they are stored: sixteen Secrets of the largest size (1 MiB).
	maxValueBytes = 16 << 20
	// maxPlainBytes limits the decompressed values, with aliases expanded. Manifests compress ten- to thirtyfold,
	// decompression bombs a thousandfold.
	maxPlainBytes = 32 << 20
	// maxDocuments limits the number of documents. The inventory of 20,000 objects alone exceeds the limit of etcd.
	maxDocuments = 20_000
	// maxNodes limits the number of nodes, which are scalars, lists and mappings, as counted by YAMLNodes and
	// JSONNodes, or by Expand if there are aliases. The definitions of the largest operators, some 70,000 lines, have
	// 200,000 nodes. Each node in memory takes up to 300 bytes.
	maxNodes = 500_000

	// maxDocumentBytes limits one document, also in its JSON form: etcd accepts writes of 1.5 MiB, and the rest is
	// for indentation.
	maxDocumentBytes = 2 << 20
	// maxDocumentNodes limits the nodes of one document. The largest definitions, some 30,000 lines, have 80,000
	// nodes. While a document is parsed, each counted node takes up to 500 bytes.
	maxDocumentNodes = 100_000
	// maxDepth limits the nesting of a document. The deepest built-in kinds have some 20 levels, CRD schemas some 60.
	maxDepth = 256
)

var (
	errTooLarge = fmt.Errorf("document is larger than %d MiB", maxDocumentBytes>>20)
	errTooDense = fmt.Errorf("document has more than %d nodes", maxDocumentNodes)
	errTooDeep  = fmt.Errorf("document is nested deeper than %d levels", maxDepth)
)

// Sources are the Secrets of a ManagedResource while they are read one by one.
type Sources struct {
	All   []Source
	bytes int
}

// Add appends a Secret, and returns false once the Secrets exceed the limits of a ManagedResource, so that the caller
// can stop reading.
func (s *Sources) Add(source Source) bool {
	s.All = append(s.All, source)
	for _, value := range source.Data {
		s.bytes += len(value)
	}
	return s.bytes <= maxValueBytes && len(s.All) <= maxSecrets
}

// budget is the remaining part of the limits of a ManagedResource.
type budget struct {
	valueBytes, plainBytes, documents, nodes int
	buffers                                  buffers

	// expansions has the measured size of exactly those parts that may be YAML documents with aliases. It avoids a
	// second measurement, which needs a parser and as much memory as decoding.
	expansions map[spot]expansion
}

// spot identifies a part by its first line and by the address of its value in memory: a Secret that is named twice
// may have been read in two versions.
type spot struct {
	value *byte
	line  int
}

func newBudget() *budget {
	return &budget{valueBytes: maxValueBytes, plainBytes: maxPlainBytes, documents: maxDocuments, nodes: maxNodes,
		expansions: map[spot]expansion{}}
}

// spend measures a value, and returns an error if the budget is exceeded. Errors in the value itself are left to its
// decoding.
func (b *budget) spend(ctx context.Context, key string, value []byte) error {
	if b.valueBytes -= len(value); b.valueBytes < 0 {
		return fmt.Errorf("the Secrets of the ManagedResource have more than %d MiB up to here", maxValueBytes>>20)
	}
	stream, err := b.buffers.open(key, value)
	if err != nil {
		return nil
	}
	for part := range b.buffers.parts(&countingReader{reader: stream, left: &b.plainBytes}) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if part.hasAliases() {
			part.expanded = expand(part.text)
			b.expansions[spot{&value[0], part.line}] = part.expanded
		}
		counts := part.size()
		b.documents--
		b.nodes -= counts.nodes
		b.plainBytes -= counts.bytes - len(part.text) // The text itself was subtracted when it was read.
		switch {
		case b.documents < 0:
			return fmt.Errorf("the Secrets of the ManagedResource have more than %d documents up to here", maxDocuments)
		case b.nodes < 0:
			return errNodes
		case b.plainBytes < 0:
			return errPlainBytes
		}
	}
	return nil
}

var errNodes = fmt.Errorf("the Secrets of the ManagedResource have more than %d nodes up to here", maxNodes)

var errPlainBytes = fmt.Errorf("the Secrets of the ManagedResource have more than %d MiB up to here when decompressed and with aliases expanded",
	maxPlainBytes>>20)

// countingReader returns errPlainBytes once more bytes were read than the budget has left.
type countingReader struct {
	reader io.Reader
	left   *int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if *c.left -= n; *c.left < 0 {
		err = errPlainBytes
	}
	return n, err
}

// checkDepth refuses documents that are nested too deeply for recursive functions.
func checkDepth(value any, levels int) error {
	if levels == 0 {
		return errTooDeep
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			if err := checkDepth(v, levels-1); err != nil {
				return err
			}
		}
	case []any:
		for _, v := range value {
			if err := checkDepth(v, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}
