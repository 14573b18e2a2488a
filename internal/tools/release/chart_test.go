package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// packed writes the charts of the repository, and returns the folder and its files.
func packed(t *testing.T) (string, map[string][]byte) {
	t.Helper()
	o := options{charts: "../../../deploy/charts", out: filepath.Join(t.TempDir(), "charts"), version: "v1.2.3-4-gabc", commit: "0123abc", time: made}
	if err := o.writeCharts([]string{"resource-manager", "admission-controller"}); err != nil {
		t.Fatal(err)
	}
	return o.out, must(filesBelow(o.out))
}

// TestCharts: a chart is in a layout as Helm wants it in a registry, its version is that of the release, and it is the same whenever it is packed.
func TestCharts(t *testing.T) {
	dir, files := packed(t)
	if _, again := packed(t); !bytes.Equal(must(json.Marshal(files)), must(json.Marshal(again))) {
		t.Error("packed again it is another one")
	}
	for _, name := range []string{"resource-manager", "admission-controller"} {
		root := must(must(layout.ImageIndexFromPath(filepath.Join(dir, name))).IndexManifest())
		if len(root.Manifests) != 1 || root.Manifests[0].Annotations[refName] != "1.2.3-4-gabc" {
			t.Fatalf("%s: got %+v", name, root.Manifests)
		}
		blob := func(digest v1.Hash) []byte { return files[name+"/blobs/sha256/"+digest.Hex] }
		manifest := must(v1.ParseManifest(bytes.NewReader(blob(root.Manifests[0].Digest))))
		if manifest.Config.MediaType != chartConfigType || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContentType {
			t.Errorf("%s: got %+v", name, manifest)
		}
		var metadata struct{ Name, Version, AppVersion, APIVersion string }
		if err := json.Unmarshal(blob(manifest.Config.Digest), &metadata); err != nil {
			t.Error(err)
		}
		if metadata.Name != name || metadata.Version != "1.2.3-4-gabc" || metadata.AppVersion != "v1.2.3-4-gabc" || metadata.APIVersion != "v2" {
			t.Errorf("%s: got %+v", name, metadata)
		}
		archive := blob(manifest.Layers[0].Digest)
		if !bytes.Equal(archive, files[name+"-1.2.3-4-gabc.tgz"]) {
			t.Errorf("%s: the file is another one than the layout has", name)
		}
		chart := string(unpacked(t, archive)[name+"/Chart.yaml"])
		if !strings.Contains(chart, "\nversion: 1.2.3-4-gabc\nappVersion: v1.2.3-4-gabc\n") {
			t.Errorf("%s: got %s", name, chart)
		}
	}
}

// TestChecksums: sha256sum agrees with the file.
func TestChecksums(t *testing.T) {
	dir, files := packed(t)
	if n := bytes.Count(files[checksums], []byte("\n")); n != 2 {
		t.Errorf("%d lines", n)
	}
	check, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("sha256sum is not on this machine")
	}
	command := exec.Command(check, "--check", "--strict", checksums)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// unpacked are the files of an archive.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(must(gzip.NewReader(bytes.NewReader(archive)))); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		files[must(header, err).Name] = must(io.ReadAll(r))
	}
}

// TestStamp: a Chart.yaml that does not say its versions in one line each is refused.
func TestStamp(t *testing.T) {
	o := options{version: "v2.0.0"}
	for _, chart := range []string{"", "version: 1\n", "appVersion: v1\n", "version: 1\nversion: 2\nappVersion: v1\n"} {
		if got, err := o.stamp([]byte(chart)); err == nil {
			t.Errorf("%q became %q", chart, got)
		}
	}
	if got := string(must(o.stamp([]byte("a: b\nversion: 1\nappVersion: x\n")))); got != "a: b\nversion: 2.0.0\nappVersion: v2.0.0\n" {
		t.Errorf("got %q", got)
	}
}

// TestVersions: versions are those that charts and tags can have.
func TestVersions(t *testing.T) {
	for _, good := range []string{"v0.0.0-g0123", "v1.2.3", "v1.2.3-5-gabc-dirty", "v10.0.0-rc.1"} {
		if err := checkVersion(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "1.2.3", "v1.2", "v1.2.3+build", "v01.2.3", "v1.2.3-", "v1.2.3-a/b", "v0.0.0-0123456", "v1.2.3\n"} {
		if checkVersion(bad) == nil {
			t.Errorf("%q is taken for a version", bad)
		}
	}
	if err := run("charts", []string{"-version", "latest", "-out", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "latest") {
		t.Errorf("got %v", err)
	}
}
