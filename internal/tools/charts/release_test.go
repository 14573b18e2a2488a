package charts

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// clone is a repository that has what this one has, as somebody has it who just cloned it, and a registry beside it.
type clone struct {
	dir, registry string
	environment   []string
}

// newClone makes one. Images are made for this machine only.
func newClone(t *testing.T) *clone {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no image is made for this machine")
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	// Clients of registries take this name alone for one without TLS.
	c := &clone{dir: t.TempDir(), registry: "localhost:" + port + "/espalier"}
	root := filepath.Dir(deploy)
	must.Succeed(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(root, path)
		if err != nil || slices.Contains([]string{".git", "bin", ".local"}, relative) {
			if entry != nil && entry.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		}
		to := filepath.Join(c.dir, relative)
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	}))
	home := t.TempDir()
	c.environment = append(os.Environ(), "ARCHITECTURES="+runtime.GOARCH, "PLATFORMS=linux/"+runtime.GOARCH, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "DOCKER_CONFIG="+home,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	c.run(t, "git init -q && git add --all && git commit -q -m all")
	return c
}

// helm builds Helm for the commands of the clone.
func (c *clone) helm(t *testing.T) {
	t.Helper()
	c.environment = append(c.environment, "PATH="+buildHelm(t)+":"+os.Getenv("PATH"))
}

// buildHelm returns the folder of an executable of Helm.
func buildHelm(t *testing.T) string {
	t.Helper()
	tools := t.TempDir()
	build := exec.Command("go", "build", "-o", tools+"/", "helm.sh/helm/v4/cmd/helm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Helm: %v: %s", err, out)
	}
	return tools
}

// run runs commands in the clone, and returns what they print.
func (c *clone) run(t *testing.T, commands string, environment ...string) string {
	t.Helper()
	out, failed, err := c.try(t, commands, environment...)
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", commands, err, out, failed)
	}
	return out
}

// try runs commands that may fail.
func (c *clone) try(t *testing.T, commands string, environment ...string) (printed, failed string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n"+commands)
	command.Dir, command.Env = c.dir, append(slices.Clone(c.environment), environment...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	return out.String(), problems.String(), err
}

// image is what a registry has under a reference for this machine, and the digest that the reference leads to.
func image(t *testing.T, reference string) (v1.Image, v1.Hash) {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	must.Succeed(t, err)
	descriptor, err := remote.Get(parsed)
	if err != nil {
		t.Fatalf("%s: %v", reference, err)
	}
	index, err := descriptor.ImageIndex()
	must.Succeed(t, err)
	manifest, err := index.IndexManifest()
	must.Succeed(t, err)
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.String() != "linux/"+runtime.GOARCH {
		t.Fatalf("%s: got %+v", reference, manifest.Manifests)
	}
	found, err := index.Image(manifest.Manifests[0].Digest)
	must.Succeed(t, err)
	return found, descriptor.Digest
}

// fileOf is a file of an image.
func fileOf(t *testing.T, of v1.Image, path string) string {
	t.Helper()
	content := mutate.Extract(of)
	defer func() { _ = content.Close() }()
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no %s", path)
		}
		must.Succeed(t, err)
		if header.Name == path {
			text, err := io.ReadAll(r)
			must.Succeed(t, err)
			return string(text)
		}
	}
}

// installation are the commands of the README under Install, with another registry.
func (c *clone) installation(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, "README.md"))
	must.Succeed(t, err)
	_, section, found := strings.Cut(string(content), "\n## Install\n")
	section, _, ends := strings.Cut(section, "\n## ")
	if !found || !ends {
		t.Fatal("the README does not tell how to install")
	}
	var all string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		all += block[1]
	}
	const example = "registry.example.com/espalier"
	if strings.Count(all, example) != 1 {
		t.Fatalf("the commands name the registry %d times:\n%s", strings.Count(all, example), all)
	}
	return strings.Replace(all, example, c.registry, 1)
}

// TestReadme: the commands of the README install the charts from a fresh clone, word by word, and what the Deployments then name is in the
// registry: an image of the executable, with the digest that was built, for the platform, under the profile of images (DPL-61, R1, R2).
func TestReadme(t *testing.T) {
	c := newClone(t)
	c.helm(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	garden, err := cluster.Start(ctx, cluster.Options{Name: "readme", Dir: t.TempDir()})
	must.Succeed(t, err)
	defer garden.Stop()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, garden.WriteKubeconfig(kubeconfig, "admin", "system:masters"))
	printed := c.run(t, c.installation(t), "KUBECONFIG="+kubeconfig)
	expect.False(t, strings.Contains(printed, "image.tag"), "the notes want a tag:\n%s", printed)

	config, err := garden.Admin()
	must.Succeed(t, err)
	reader, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	must.Succeed(t, err)
	var deployments appsv1.DeploymentList
	must.Succeed(t, reader.List(ctx, &deployments, client.InNamespace(namespace)))
	version := strings.TrimSpace(c.run(t, "echo v0.0.0-g$(git describe --always)"))
	installed := map[string]bool{}
	for _, d := range deployments.Items {
		executable := d.Labels["app.kubernetes.io/name"]
		installed[executable] = true
		reference := d.Spec.Template.Spec.Containers[0].Image
		if want := fmt.Sprintf("%s/%s:%s", c.registry, executable, version); reference != want || d.Labels["app.kubernetes.io/version"] != version {
			t.Errorf("%s: image %s, version %s, want %s", executable, reference, d.Labels["app.kubernetes.io/version"], want)
		}
		pulled, digest := image(t, reference)
		built := filepath.Join("bin", "images", executable)
		expect.Contains(t, strings.ReplaceAll(printed, c.dir+"/", ""), fmt.Sprintf("%s:%s %s\n", built, version, digest),
			"%s was pulled with %s, which was not built:\n%s", executable, digest, printed)
		file, err := pulled.ConfigFile()
		must.Succeed(t, err)
		if !slices.Equal(file.Config.Entrypoint, []string{"/" + executable}) || file.OS != "linux" || file.Architecture != runtime.GOARCH || file.Config.User != "65532:65532" {
			t.Errorf("%s: got %+v", executable, file)
		}
		expect.Equal(t, fileOf(t, pulled, "etc/espalier/defaults.yaml"), "profile: gardener\n",
			"%s: the defaults", executable)
		listed(t, reference, pulled)
	}
	expect.True(t, len(installed) == len(charts(t)) && len(deployments.Items) == len(installed), "got %v", installed)
	for _, name := range charts(t) {
		c.pulls(t, name, version)
	}
}

// listed: the list of parts of an image came with it.
func listed(t *testing.T, reference string, of v1.Image) {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	must.Succeed(t, err)
	digest, err := of.Digest()
	must.Succeed(t, err)
	index, err := remote.Referrers(parsed.Context().Digest(digest.String()))
	must.Succeed(t, err)
	manifest, err := index.IndexManifest()
	must.Succeed(t, err)
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].ArtifactType != "application/vnd.cyclonedx+json" {
		t.Errorf("%s: %+v refer to it", reference, manifest.Manifests)
	}
}

// pulls: Helm takes a chart out of the registry: the one that was packed, which renders with the version of the images.
func (c *clone) pulls(t *testing.T, chart, version string) {
	t.Helper()
	number := strings.TrimPrefix(version, "v")
	to := t.TempDir()
	c.run(t, fmt.Sprintf("helm pull oci://%s/charts/%s --version %s --plain-http --destination %s", c.registry, chart, number, to))
	pulled, err := os.ReadFile(filepath.Join(to, chart+"-"+number+".tgz"))
	must.Succeed(t, err)
	packed, err := os.ReadFile(filepath.Join(c.dir, "bin", "charts", chart+"-"+number+".tgz"))
	must.Succeed(t, err)
	expect.True(t, bytes.Equal(pulled, packed), "%s: another archive was pulled", chart)
	text := c.run(t, fmt.Sprintf("helm template test oci://%s/charts/%s --version %s --plain-http", c.registry, chart, number))
	list, err := objects(text)
	must.Succeed(t, err)
	found := false
	for _, object := range list {
		if object.GetKind() == "Deployment" {
			content, err := json.Marshal(object)
			must.Succeed(t, err)
			found = strings.Contains(string(content), `"image":"espalier/`+chart+":"+version+`"`) && object.GetLabels()["helm.sh/chart"] == chart+"-"+number
		}
	}
	expect.True(t, found, "%s: the chart renders another version:\n%s", chart, text)
}

// TestRelease: a release is the same whenever it is made from a commit, and its signatures, provenance and lists of parts come with it.
func TestRelease(t *testing.T) {
	c := newClone(t)
	if _, failed, err := c.try(t, "make release"); err == nil || !strings.Contains(failed, "VERSION=") {
		t.Errorf("a release without a version: %v, %s", err, failed)
	}
	c.run(t, "touch new")
	if _, failed, err := c.try(t, "make release VERSION=v1.2.3"); err == nil || !strings.Contains(failed, "in no commit") {
		t.Errorf("a release of nobody's commit: %v, %s", err, failed)
	}
	c.run(t, "rm new")
	const sums = "\ncat bin/SHA256SUMS bin/SHA256SUMS.sig"
	const key = "release.key"
	must.Succeed(t, os.WriteFile(filepath.Join(c.dir, ".git", key), ownKey(t), 0o600))
	first := c.run(t, "make release VERSION=v1.2.3 KEY=.git/"+key+" >&2"+sums)
	second := c.run(t, "rm -rf bin; make release VERSION=v1.2.3 KEY=.git/"+key+" >&2"+sums)
	if first != second || strings.Count(first, "\n") != 4*len(charts(t))+3 { // Provenance, and the archive of the client with its checksums.
		t.Errorf("made twice:\n%s\n%s", first, second)
	}
	c.run(t, "cd bin && sha256sum --check --strict --quiet SHA256SUMS")
	expect.Contains(t, c.run(t, "make push REGISTRY="+c.registry), "repository: "+c.registry+"/resource-manager\n",
		"DPL-126: make push prints no image vector overwrite")
	for _, chart := range charts(t) {
		for _, reference := range []string{c.registry + "/" + chart + ":v1.2.3", c.registry + "/charts/" + chart + ":1.2.3"} {
			parsed, err := name.ParseReference(reference)
			must.Succeed(t, err)
			descriptor, err := remote.Head(parsed)
			must.Succeed(t, err)
			tags, err := remote.List(parsed.Context())
			must.Succeed(t, err)
			for _, suffix := range []string{".sig", ".att"} {
				if want := "sha256-" + descriptor.Digest.Hex + suffix; !slices.Contains(tags, want) {
					t.Errorf("%s: %s is missing: %q", reference, want, tags)
				}
			}
			index, err := remote.Referrers(parsed.Context().Digest(descriptor.Digest.String()))
			must.Succeed(t, err)
			manifest, err := index.IndexManifest()
			must.Succeed(t, err)
			if len(manifest.Manifests) != 1 || manifest.Manifests[0].ArtifactType != "application/vnd.in-toto+json" {
				t.Errorf("%s: %+v refer to it", reference, manifest.Manifests)
			}
		}
	}
}

// ownKey is a private key as PEM.
func ownKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	content, err := x509.MarshalPKCS8PrivateKey(key)
	must.Succeed(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content})
}
