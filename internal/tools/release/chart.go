package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types by which Helm identifies a chart in a registry.
const (
	chartConfigType  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContentType = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// versions matches the lines of a Chart.yaml that a release changes.
var versions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// writeCharts writes the archive and the layout of each chart, and the checksums of the archives; it prints the digests.
func (o *options) writeCharts(names []string) error {
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	for _, name := range names {
		digest, err := o.writeChart(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s:%s %s\n", filepath.Join(o.out, name), o.chartVersion(), digest)
	}
	return writeChecksums(o.out, checksums, "*.tgz")
}

func (o *options) writeChart(name string) (v1.Hash, error) {
	files, err := filesBelow(filepath.Join(o.charts, name))
	if err != nil {
		return v1.Hash{}, err
	}
	if files["Chart.yaml"], err = o.stamp(files["Chart.yaml"]); err != nil {
		return v1.Hash{}, err
	}
	metadata, err := yaml.YAMLToJSON(files["Chart.yaml"])
	if err != nil {
		return v1.Hash{}, err
	}
	archive, err := tarGzip(plainFiles(name+"/", files), o.time)
	if err != nil {
		return v1.Hash{}, err
	}
	path, err := newLayout(filepath.Join(o.out, name))
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.WriteFile(filepath.Join(o.out, name+"-"+o.chartVersion()+".tgz"), archive, 0o644); err != nil {
		return v1.Hash{}, err
	}
	annotations := maps.Clone(o.labels(name))
	annotations["org.opencontainers.image.version"] = o.chartVersion()
	annotations["org.opencontainers.image.description"] = "Helm chart: " + descriptions[name]
	return put(path, o.chartVersion(), blob{chartConfigType, metadata}, blob{chartContentType, archive}, annotations)
}

// stamp writes the version of the release into a Chart.yaml, as version of the chart and as version of the
// application, which is the tag of the image.
func (o *options) stamp(chart []byte) ([]byte, error) {
	if found := versions.FindAll(chart, -1); len(found) != 2 {
		return nil, errors.New("Chart.yaml needs one version and one appVersion")
	}
	return versions.ReplaceAllFunc(chart, func(line []byte) []byte {
		if bytes.HasPrefix(line, []byte("app")) {
			return []byte("appVersion: " + o.version)
		}
		return []byte("version: " + o.chartVersion())
	}), nil
}

// filesBelow returns the files of a folder, by their paths with slashes.
func filesBelow(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no file", path)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(strings.TrimPrefix(path, filepath.Clean(dir)+string(filepath.Separator)))] = content
		return nil
	})
	return files, err
}
