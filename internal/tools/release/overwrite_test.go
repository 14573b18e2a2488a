package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestOverwrite: the image vector names the images as Gardener does, by the digests that were pushed; sealing a release changes nothing of it.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	build(t, dir)
	for name := range imageVector {
		if err := os.Link(filepath.Join(dir, "linux-"+runtime.GOARCH, executable), filepath.Join(dir, "linux-"+runtime.GOARCH, name)); err != nil {
			t.Fatal(err)
		}
	}
	o := options{binaries: dir, out: filepath.Join(dir, "images"), version: version, commit: strings.Repeat("0a", 20), time: made, architectures: []string{runtime.GOARCH}, registry: "registry.example.com/espalier"}
	printed := func() string {
		t.Helper()
		var out strings.Builder
		at := o
		at.out = dir
		if err := at.writeOverwrite(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := printed(); got != "" {
		t.Errorf("DPL-126: without images: %s", got)
	}
	var want strings.Builder
	want.WriteString("# Image vector overwrite for Gardener (IMAGEVECTOR_OVERWRITE):\nimages:\n")
	for _, name := range []string{"admission-controller", "resource-manager"} {
		digest := must(o.write(name))
		want.WriteString("- name: gardener-" + name + "\n  repository: registry.example.com/espalier/" + name + "\n  sourceRepository: github.com/espalier-project/espalier\n  tag: " + version + "@" + digest.String() + "\n")
	}
	if got := printed(); got != want.String() {
		t.Errorf("DPL-126: got\n%swant\n%s", got, want.String())
	}
	sealed := o
	sealed.out = dir
	if err := sealed.seal(nil); err != nil {
		t.Fatal(err)
	}
	if got := printed(); got != want.String() {
		t.Errorf("DPL-126: sealed it is\n%s", got)
	}
}
