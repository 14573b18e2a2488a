package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
)

const (
	// maxValueBytes limits a decompressed value. A Secret holds at most 1 MiB; manifests compress ten- to thirtyfold, so
	// that 32 MiB is more than any honest value has, while a bomb (1 MiB of Brotli can stand for gigabytes) stops early.
	maxValueBytes = 32 << 20
	// maxDocuments limits the documents of one value. The smallest object that means anything has some 50 bytes; the
	// inventory of 20,000 objects alone would exceed what etcd stores.
	maxDocuments = 20_000
	// maxDepth limits the nesting of a document. The deepest built-in kinds nest some 20 levels, CRD schemas some 60.
	maxDepth = 256
)

var (
	errTooLarge = fmt.Errorf("value is larger than %d MiB", maxValueBytes>>20)
	errTooDeep  = fmt.Errorf("document is nested deeper than %d levels", maxDepth)
)

// decompress reads a Brotli stream that must end where the value ends.
func decompress(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errors.New("brotli: value is empty")
	}
	plain, err := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(value)), maxValueBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("brotli: %w", err)
	case len(plain) > maxValueBytes:
		return nil, errTooLarge
	}
	return plain, nil
}

// checkDepth refuses documents that nest too deeply for the recursive functions that follow.
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
