package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"sigs.k8s.io/yaml"
)

// imageVector has the names by which Gardener's deployers look for the images (DPL-110).
var imageVector = map[string]string{"resource-manager": "gardener-resource-manager", "admission-controller": "gardener-admission-controller"}

// vectorImage is an entry of an image vector (DPL-111).
type vectorImage struct {
	Name             string `json:"name"`
	SourceRepository string `json:"sourceRepository"`
	Repository       string `json:"repository"`
	Tag              string `json:"tag"`
}

func overwriteFlags(set *flag.FlagSet, o *options, _ *given) {
	set.StringVar(&o.registry, "registry", "", "<host>/<path> to which the images are pushed")
}

// printOverwrite prints the file for IMAGEVECTOR_OVERWRITE that makes Gardener use the images, each by its tag and
// its digest.
func (o *options) printOverwrite([]string) error { return o.writeOverwrite(os.Stdout) }

func (o *options) writeOverwrite(out io.Writer) error {
	var images []vectorImage
	for _, executable := range sorted(imageVector) {
		index, err := layout.ImageIndexFromPath(filepath.Join(o.out, "images", executable))
		if errors.Is(err, os.ErrNotExist) {
			continue // Only some of the images were built.
		}
		if err != nil {
			return err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		for _, d := range manifest.Manifests {
			// Signatures and documents are images; only the executable has an index, of its architectures.
			if d.MediaType.IsIndex() {
				images = append(images, vectorImage{
					imageVector[executable], strings.TrimPrefix(source, "https://"), o.registry + "/" + executable, d.Annotations[refName] + "@" + d.Digest.String(),
				})
			}
		}
	}
	content, err := yaml.Marshal(map[string]any{"images": images})
	if err != nil || len(images) == 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "# Image vector overwrite for Gardener (IMAGEVECTOR_OVERWRITE):\n%s", content)
	return err
}
