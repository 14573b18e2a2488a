package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	executable = "node-agent-authorizer"
	version    = "v1.2.3"
)

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// build builds an executable as make does.
func build(t *testing.T, dir string) {
	t.Helper()
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "linux-"+runtime.GOARCH, executable), "./cmd/"+executable)
	command.Dir = "../../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func write(t *testing.T, binaries string) (layout.Path, v1.Hash) {
	t.Helper()
	o := options{binaries: binaries, out: t.TempDir(), version: version, commit: "0123abc", time: made, architectures: []string{runtime.GOARCH}, defaults: must(defaultsOf("", "gardener"))}
	digest, err := o.write(executable)
	if err != nil {
		t.Fatal(err)
	}
	path, err := layout.FromPath(filepath.Join(o.out, executable))
	if err != nil {
		t.Fatal(err)
	}
	return path, digest
}

// TestDefaults: images follow a profile, or a file of the user's (R1, R2, R8 by profile).
func TestDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "defaults.yaml")
	if err := os.WriteFile(file, []byte("profile: contract\nlogLevel: debug\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, profile, want string }{
		"a profile": {"", "gardener", "profile: gardener\n"},
		"a file":    {file, "gardener", "profile: contract\nlogLevel: debug\n"},
	} {
		if got, err := defaultsOf(c.path, c.profile); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := defaultsOf(file+".none", ""); err == nil {
		t.Error("a file that there is not is an error")
	}
}

// must ends the test with a panic where something fails that has nothing to do with what is tested.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// parts returns what a layout has: the index under the version, its one image, and what refers to that.
func parts(t *testing.T, path layout.Path) (v1.ImageIndex, v1.Image, v1.Image) {
	t.Helper()
	root := must(must(path.ImageIndex()).IndexManifest())
	var index v1.ImageIndex
	var attached v1.Image
	for _, descriptor := range root.Manifests {
		if descriptor.MediaType == types.OCIImageIndex {
			if name := descriptor.Annotations[refName]; name != version {
				t.Errorf("the index is named %q", name)
			}
			index = must(must(path.ImageIndex()).ImageIndex(descriptor.Digest))
		} else {
			attached = must(path.Image(descriptor.Digest))
		}
	}
	if index == nil || attached == nil {
		t.Fatalf("got %+v", root.Manifests)
	}
	manifest := must(index.IndexManifest())
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH || manifest.Manifests[0].Platform.OS != "linux" {
		t.Fatalf("got %+v", manifest.Manifests)
	}
	return index, must(index.Image(manifest.Manifests[0].Digest)), attached
}

// files returns what is in an image, folders with a slash.
func files(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	found := map[string]*tar.Header{}
	each(t, image, func(header *tar.Header, _ io.Reader) { found[header.Name] = header })
	return found
}

func each(t *testing.T, image v1.Image, visit func(*tar.Header, io.Reader)) {
	t.Helper()
	for _, layer := range must(image.Layers()) {
		content := must(layer.Uncompressed())
		for archive := tar.NewReader(content); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			visit(must(header, err), archive)
		}
		_ = content.Close()
	}
}

func content(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	var found []byte
	each(t, image, func(header *tar.Header, r io.Reader) {
		if header.Name == name {
			found = must(io.ReadAll(r))
		}
	})
	return found
}

// DPL-61: an image has nothing but the executable and what it needs, and no root; it is the same whenever it is made.
func TestImage(t *testing.T) {
	if runtime.GOOS != "linux" || !slices.Contains([]string{"amd64", "arm64"}, runtime.GOARCH) {
		t.Skip("no image is made for this machine")
	}
	binaries := t.TempDir()
	build(t, binaries)
	path, digest := write(t, binaries)
	index, image, attached := parts(t, path)
	for name, err := range map[string]error{"index": validate.Index(index), "list of parts": validate.Image(attached)} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	var names []string
	for name, header := range files(t, image) {
		names = append(names, name)
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(time.Unix(0, 0)) || name != "tmp/" && header.Mode&0o222 != 0 && !strings.HasSuffix(name, "/") {
			t.Errorf("%s: %+v", name, header)
		}
	}
	slices.Sort(names)
	if want := []string{"etc/", "etc/espalier/", defaults, "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", certificates, executable, "tmp/"}; !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}

	config := must(image.ConfigFile())
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/" + executable}) || config.OS != "linux" || config.Architecture != runtime.GOARCH || !config.Created.Equal(made) {
		t.Errorf("got %+v", config)
	}
	manifest := must(image.Manifest())
	for _, labels := range []map[string]string{config.Config.Labels, manifest.Annotations, must(index.IndexManifest()).Annotations} {
		for key, want := range map[string]string{"title": executable, "version": version, "revision": "0123abc", "created": "2026-01-02T03:04:05Z", "licenses": "Apache-2.0"} {
			if got := labels["org.opencontainers.image."+key]; got != want {
				t.Errorf("%s: %q", key, got)
			}
		}
	}

	again := t.TempDir()
	build(t, again)
	if _, second := write(t, again); second != digest {
		t.Errorf("made again it is %s, not %s", second, digest)
	}

	if got := string(content(t, image, defaults)); got != "profile: gardener\n" {
		t.Errorf("the defaults are %q", got)
	}

	pool := x509.NewCertPool()
	for rest := content(t, image, certificates); len(rest) > 0; {
		block, next := pem.Decode(rest)
		if block == nil {
			t.Fatal("not all of it is PEM")
		}
		pool.AddCert(must(x509.ParseCertificate(block.Bytes)))
		rest = next
	}
	if pool.Equal(x509.NewCertPool()) {
		t.Error("there are no certificates")
	}

	run := filepath.Join(t.TempDir(), executable)
	if err := os.WriteFile(run, content(t, image, executable), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(run, "--version").CombinedOutput()
	if err != nil || !bytes.HasPrefix(out, []byte(executable+" v")) {
		t.Errorf("got %s, %v", out, err)
	}
}

// The list of parts belongs to the image, is CycloneDX whose references lead to parts, and names what was linked.
func TestParts(t *testing.T) {
	if runtime.GOOS != "linux" || !slices.Contains([]string{"amd64", "arm64"}, runtime.GOARCH) {
		t.Skip("no image is made for this machine")
	}
	binaries := t.TempDir()
	build(t, binaries)
	path, _ := write(t, binaries)
	_, image, attached := parts(t, path)
	manifest := must(attached.Manifest())
	if manifest.Subject == nil || manifest.Subject.Digest != must(image.Digest()) || manifest.Config.MediaType != sbomType {
		t.Errorf("got %+v", manifest)
	}
	layer := must(attached.Layers())[0]
	raw := must(io.ReadAll(must(layer.Uncompressed())))
	beside := must(os.ReadFile(filepath.Join(filepath.Dir(string(path)), executable+"-linux-"+runtime.GOARCH+".cdx.json")))
	if !bytes.Equal(raw, beside) {
		t.Error("the file beside the layout is another one")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(raw), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if main := bom.Metadata.Component; main.Version != version || !strings.HasSuffix(main.BOMRef, "#cmd/"+executable) || bom.Metadata.Timestamp != made.Format(time.RFC3339) || bom.SerialNumber != "" {
		t.Errorf("got %+v of %s", main, bom.Metadata.Timestamp)
	}
	known := map[string]bool{bom.Metadata.Component.BOMRef: true}
	named := map[string]bool{}
	for _, c := range *bom.Components {
		if known[c.BOMRef] || c.Version == "" || c.PackageURL == "" {
			t.Errorf("got %+v", c)
		}
		known[c.BOMRef], named[c.Name] = true, true
	}
	for _, d := range *bom.Dependencies {
		if !known[d.Ref] {
			t.Errorf("nothing is %s", d.Ref)
		}
	}
	for _, name := range []string{"std", "k8s.io/client-go", rootsModule} {
		if !named[name] {
			t.Errorf("%s is not listed", name)
		}
	}
}

func TestWhatWouldNotRunIsRefused(t *testing.T) {
	self := must(os.Executable())
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	if err := checkStatic(self, other); err == nil || !strings.Contains(err.Error(), "not for "+other) {
		t.Errorf("another architecture: %v", err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no program with libraries")
	}
	if err := checkStatic(shell, runtime.GOARCH); err == nil {
		t.Errorf("%s is taken for a static program", shell)
	}
}
