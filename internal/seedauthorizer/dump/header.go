package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

const (
	// Format identifies the header of a dump.
	Format = "espalier-garden-dump"
	// Version is the version of the format. A reader refuses other versions.
	Version = 1

	headerName = "header.json"
	// headerLimit limits a header: it has about twenty files of some hundred bytes each.
	headerLimit = 64 << 10
)

// Header describes a dump.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Taken is the time at which the dump was begun. Certificates that have expired at this time count as expired.
	Taken time.Time `json:"taken"`
	Files []File    `json:"files"`
}

// File has the objects of one resource.
type File struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
}

// Objects is the number of objects in all files.
func (h Header) Objects() (all int) {
	for _, f := range h.Files {
		all += f.Objects
	}
	return all
}

// part is a kind with objects in a dump.
type part struct {
	kind     graph.Kind
	resource schema.GroupVersionResource
	fresh    func() runtime.Object
}

func (p part) kindName() string { return relation.Schema.Names[p.kind] }

// file returns the name of the file with the objects of a kind: the resource and its API group.
func (p part) file() string { return p.resource.GroupResource().String() + ".jsonl" }

// parts returns all kinds of a dump in the order of its files. Kinds with facts about other objects come first, so
// that few edges are computed twice: Namespaces have the names of projects, Seeds the times at which certificates
// expire.
func parts() []part {
	all := []part{{relation.Namespace, corev1.SchemeGroupVersion.WithResource("namespaces"), func() runtime.Object { return &corev1.Namespace{} }}}
	add := func(w *relation.Watch) { all = append(all, part{w.Kind, w.Resource, w.New}) }
	add(relation.WatchOf(relation.Seed))
	for _, w := range relation.Watches {
		if w.Kind != relation.Seed {
			add(w)
		}
	}
	return all
}

// ReadHeader reads the header of a dump.
func ReadHeader(dir string) (Header, error) {
	var h Header
	file, err := os.Open(filepath.Join(dir, headerName))
	if errors.Is(err, fs.ErrNotExist) {
		return h, fmt.Errorf("%s has no %s: it is no dump, or one that was not finished", dir, headerName)
	}
	if err != nil {
		return h, err
	}
	defer func() { _ = file.Close() }()
	text, err := readAtMost(file, headerLimit)
	if err != nil {
		return h, fmt.Errorf("%s: %w", headerName, err)
	}
	switch err := json.Unmarshal(text, &h); {
	case err != nil:
		return h, fmt.Errorf("%s: %w", headerName, err)
	case h.Format != Format:
		return h, fmt.Errorf("%s: format is %q, want %q", headerName, h.Format, Format)
	case h.Version != Version:
		return h, fmt.Errorf("%s: version is %d, and only version %d can be read", headerName, h.Version, Version)
	}
	return h, nil
}
