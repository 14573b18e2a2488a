package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/graph"
)

// lineLimit limits an object. etcd stores at most 1.5 MiB of one, and its part in a dump is shorter.
const lineLimit = 2 << 20

// Read hands over all objects of a dump, those with facts about others first: Namespaces, then Seeds. It holds one of them at a time.
func Read(dir string, each func(kind graph.Kind, object runtime.Object) error) (Header, error) {
	h, err := ReadHeader(dir)
	if err != nil {
		return h, err
	}
	known := parts()
	for _, f := range h.Files {
		if !slices.ContainsFunc(known, func(p part) bool { return p.file() == f.Name }) {
			return h, fmt.Errorf("%s: the file %s is of no kind that is known", headerName, f.Name)
		}
	}
	for _, p := range known {
		at := slices.IndexFunc(h.Files, func(f File) bool { return f.Name == p.file() })
		if at < 0 {
			return h, fmt.Errorf("%s: the file %s is missing", headerName, p.file())
		}
		if err := readFile(dir, p, h.Files[at].Objects, each); err != nil {
			return h, err
		}
	}
	return h, nil
}

func readFile(dir string, p part, want int, each func(graph.Kind, runtime.Object) error) error {
	file, err := os.Open(filepath.Join(dir, p.file())) //nolint:gosec // The folder is the caller's, the name is a resource's.
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, 64<<10), lineLimit)
	count := 0
	for lines.Scan() {
		count++
		object := p.fresh()
		// The decoder's error may contain a part of the line; the number of the line is sufficient.
		if err := kjson.UnmarshalCaseSensitivePreserveInts(lines.Bytes(), object); err != nil {
			return fmt.Errorf("%s: line %d is no %s", p.file(), count, p.kindName())
		}
		if err := each(p.kind, object); err != nil {
			return fmt.Errorf("%s: line %d: %w", p.file(), count, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: line %d: %w", p.file(), count+1, err)
	}
	if count != want {
		return fmt.Errorf("%s has %d objects, and the header says %d", p.file(), count, want)
	}
	return nil
}

// errTooLong reports more content than expected.
var errTooLong = errors.New("it is too long")

func readAtMost(from io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errTooLong
	}
	return text, err
}
