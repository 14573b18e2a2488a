package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// clientPlatforms are those of a release; the Makefile names them, too.
const clientPlatforms = "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"

// buildClient builds the client for this machine, as make does.
func buildClient(t *testing.T, binary string) {
	t.Helper()
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "./internal/client/"+client)
	command.Dir = "../../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// packedClient returns the files that a release has of the client, made of binaries, by name.
func packedClient(t *testing.T, binaries, runs, platforms, baseURL string) map[string][]byte {
	t.Helper()
	o := options{
		binaries: binaries, out: filepath.Join(t.TempDir(), "client"), version: version, time: made,
		client: clientOptions{platforms: platforms, runs: runs, license: "../../../LICENSE", baseURL: baseURL},
	}
	if err := o.writeClient(nil); err != nil {
		t.Fatal(err)
	}
	return must(filesBelow(o.out))
}

// TestClient: the archive of a platform is the same whenever it is built, and has the client, its licence, a page for each verb and completions.
func TestClient(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	var first map[string][]byte
	for range 2 {
		dir := t.TempDir()
		binary := filepath.Join(dir, runtime.GOOS+"-"+runtime.GOARCH, client)
		buildClient(t, binary)
		files := packedClient(t, dir, binary, platform, "")
		if first != nil && !maps.EqualFunc(first, files, bytes.Equal) {
			t.Error("CLI-62: built again it is another one")
		}
		first = files
	}
	name := fmt.Sprintf("%s_%s_%s_%s.tar.gz", client, version, runtime.GOOS, runtime.GOARCH)
	if names := sorted(first); !slices.Equal(names, []string{clientChecksums, name}) {
		t.Errorf("CLI-62: got %v", names)
	}
	contents := unpacked(t, first[name])
	for path, begins := range map[string]string{
		client: "\x7fELF", "LICENSE": "", completer: "#!/bin/sh\n", "man/" + client + ".1": ".TH ", "man/" + client + "-why.1": ".TH ", "man/" + client + "-diff.1": ".TH ",
		"completions/" + client + ".bash": "# bash completion", "completions/_" + client: "#compdef " + client, "completions/" + client + ".fish": "# fish completion",
		"completions/" + client + ".ps1": "# powershell completion",
	} {
		if content, found := contents[path]; !found || !strings.HasPrefix(string(content), begins) {
			t.Errorf("CLI-62: %s: found %t, begins with %.20q", path, found, content)
		}
	}
}

// TestKrewManifest: it has the fields that krew requires, and the checksums and executables of the archives.
func TestKrewManifest(t *testing.T) {
	binaries := t.TempDir()
	for platform := range strings.FieldsSeq(clientPlatforms) {
		dir := filepath.Join(binaries, strings.ReplaceAll(platform, "/", "-"))
		name := client
		if strings.HasPrefix(platform, "windows/") {
			name += ".exe"
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(platform), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runs := must(exec.LookPath("true"))
	files := packedClient(t, binaries, runs, clientPlatforms, "https://example.com/releases/{version}/")
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(files[krewManifest], &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "espalier" {
		t.Errorf("CLI-62: got %+v", plugin)
	}
	if short := plugin.Spec.ShortDescription; plugin.Spec.Version != version || short == "" || len(short) > 50 || strings.Contains(short, "\n") {
		t.Errorf("CLI-62: got %+v", plugin.Spec)
	}
	listed := string(files[clientChecksums])
	var platforms []string
	for _, p := range plugin.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
		platforms = append(platforms, platform)
		name, ok := strings.CutPrefix(p.URI, "https://example.com/releases/"+version+"/")
		if !ok || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(p.SHA256) || !strings.Contains(listed, p.SHA256+"  "+name+"\n") {
			t.Errorf("CLI-62: got %+v, listed are\n%s", p, listed)
		}
		contents := map[string][]byte{}
		if strings.HasSuffix(name, ".zip") {
			for _, f := range must(zip.NewReader(bytes.NewReader(files[name]), int64(len(files[name])))).File {
				contents[f.Name] = must(io.ReadAll(must(f.Open())))
			}
		} else {
			contents = unpacked(t, files[name])
		}
		if string(contents[p.Bin]) != platform || len(contents["LICENSE"]) == 0 {
			t.Errorf("CLI-62: %s has %v", name, sorted(contents))
		}
	}
	if makefile := string(must(os.ReadFile("../../../Makefile"))); !strings.Contains(makefile, "\nPLATFORMS    ?= "+clientPlatforms+"\n") {
		t.Error("CLI-62: make client packs other platforms")
	}
	if !slices.Equal(platforms, strings.Fields(clientPlatforms)) {
		t.Errorf("CLI-62: got %v", platforms)
	}
	for _, base := range []string{"http://example.com", "example.com", "https://"} {
		o := options{binaries: binaries, out: t.TempDir(), version: version, client: clientOptions{runs: runs, license: "../../../LICENSE", baseURL: base}}
		if err := o.writeClient(nil); err == nil || !strings.Contains(err.Error(), "https://") {
			t.Errorf("CLI-62: %s: %v", base, err)
		}
	}
}
