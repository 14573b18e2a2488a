package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation with which a layout tags its content.
const refName = "org.opencontainers.image.ref.name"

// newLayout makes an empty layout, and removes an existing one.
func newLayout(dir string) (layout.Path, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
}

// blob is content of a layout, and its media type.
type blob struct {
	kind    types.MediaType
	content []byte
}

// describe writes a blob into a layout and describes it.
func (b blob) describe(path layout.Path) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(b.content))
	if err != nil {
		return v1.Descriptor{}, err
	}
	err = path.WriteBlob(digest, io.NopCloser(bytes.NewReader(b.content)))
	return v1.Descriptor{MediaType: b.kind, Size: size, Digest: digest}, err
}

// put writes a manifest of one layer into a layout, under a tag.
func put(path layout.Path, tag string, config, layer blob, annotations map[string]string) (v1.Hash, error) {
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: annotations}
	var err error
	if manifest.Config, err = config.describe(path); err != nil {
		return v1.Hash{}, err
	}
	described, err := layer.describe(path)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest.Layers = []v1.Descriptor{described}
	content, err := json.Marshal(manifest)
	if err != nil {
		return v1.Hash{}, err
	}
	whole, err := blob{types.OCIManifestSchema1, content}.describe(path)
	if err != nil {
		return v1.Hash{}, err
	}
	whole.Annotations = map[string]string{refName: tag}
	return whole.Digest, path.AppendDescriptor(whole)
}

// attach returns a manifest with a document about another manifest in a layout, and a reference to that manifest.
func attach(document []byte, kind types.MediaType, subject v1.Descriptor) (v1.Image, error) {
	// The type of a manifest that has none is the media type of its configuration.
	list := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), kind)
	list, err := mutate.Append(list, mutate.Addendum{Layer: static.NewLayer(document, kind)})
	if err != nil {
		return nil, err
	}
	attached, ok := mutate.Subject(list, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("a subject made no image")
	}
	return attached, nil
}
