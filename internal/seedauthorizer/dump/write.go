package dump

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// contentLimit limits the content that a writer keeps in memory until it sorts and writes it. A Shoot takes about 600
// bytes of a dump, so that this is a garden of half a million Shoots.
const contentLimit = 512 << 20

// Writer takes the objects of a garden in any order, each of them once, and writes them sorted when it is closed.
type Writer struct {
	dir   string
	taken time.Time
	lines map[graph.Kind][]line
	bytes int
}

// line is an object as it is written.
type line struct {
	namespace, name string
	text            []byte
}

// Create prepares a dump in a folder that is empty or does not exist yet.
func Create(dir string, taken time.Time) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: a dump needs an empty folder", dir)
	}
	return &Writer{dir: dir, taken: taken.UTC().Truncate(time.Second), lines: map[graph.Kind][]line{}}, nil
}

// Add takes an object: a Namespace, or one of a kind of the table of edges. Objects without a vertex in any graph are
// left out.
func (w *Writer) Add(kind graph.Kind, object runtime.Object) error {
	if kind != relation.Namespace && !matters(kind, object) {
		return nil
	}
	less, namespace, name, err := cut(object)
	if err != nil {
		return err
	}
	text, err := json.Marshal(less)
	if err != nil {
		return fmt.Errorf("%s %s/%s: %w", relation.Schema.Names[kind], namespace, name, err)
	}
	if w.bytes += len(text); w.bytes > contentLimit {
		return fmt.Errorf("%s %s/%s: the dump has more than %d MiB", relation.Schema.Names[kind], namespace, name, contentLimit>>20)
	}
	w.lines[kind] = append(w.lines[kind], line{namespace, name, text})
	return nil
}

// matters reports whether an object has a vertex in one of the graphs. Only kinds whose edges need no facts have objects without one.
func matters(kind graph.Kind, object runtime.Object) bool {
	for _, table := range []relation.Table{relation.Watches, relation.SelfHosted} {
		if watch := table.Of(kind); watch != nil {
			if _, _, keep := watch.Contribute(object, nothing{}); keep {
				return true
			}
		}
	}
	return false
}

// nothing has no facts about other objects.
type nothing struct{}

func (nothing) Seed(string) (bool, time.Time) { return false, time.Time{} }
func (nothing) ProjectOf(string) string       { return "" }
func (nothing) Now() time.Time                { return time.Time{} }

// Close writes all objects, and the header last.
func (w *Writer) Close() (Header, error) {
	h := Header{Format: Format, Version: Version, Taken: w.taken}
	for _, p := range parts() {
		lines := w.lines[p.kind]
		slices.SortFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name)) })
		if err := writeFile(filepath.Join(w.dir, p.file()), lines); err != nil {
			return h, err
		}
		h.Files = append(h.Files, File{Name: p.file(), Kind: p.kindName(), Objects: len(lines)})
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return h, err
	}
	return h, os.WriteFile(filepath.Join(w.dir, headerName), append(text, '\n'), 0o600)
}

func writeFile(path string, lines []line) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // The folder is the caller's, the name is a resource's.
	if err != nil {
		return err
	}
	to := bufio.NewWriter(file)
	for _, l := range lines {
		_, _ = to.Write(l.text) // A writer with a buffer reports its errors when it is flushed.
		_ = to.WriteByte('\n')
	}
	return errors.Join(to.Flush(), file.Close())
}
