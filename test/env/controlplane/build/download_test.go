package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

var someVersions = versions{kubernetes: "v1.37.2", etcd: "v3.7.3"}

// releases serves files as the official servers do.
func releases(t *testing.T) map[string][]byte {
	t.Helper()
	kubernetes, etcdFolder := "/release/v1.37.2/bin/linux/"+runtime.GOARCH+"/", "/etcd-io/etcd/releases/download/v3.7.3/"
	archive := "etcd-v3.7.3-linux-" + runtime.GOARCH
	files := map[string][]byte{etcdFolder + archive + ".tar.gz": packed(t, archive+"/etcd", "the program etcd")}
	for _, name := range []string{apiserver, controllerManager} {
		files[kubernetes+name] = []byte("the program " + name)
		files[kubernetes+name+".sha256"] = fmt.Appendf(nil, "%x", sha256.Sum256(files[kubernetes+name]))
	}
	files[etcdFolder+"SHA256SUMS"] = fmt.Appendf(nil, "%064d  etcd-v3.7.3-darwin-arm64.zip\n%x  %s.tar.gz\n", 0,
		sha256.Sum256(files[etcdFolder+archive+".tar.gz"]), archive)
	return files
}

func packed(t *testing.T, name, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	files := tar.NewWriter(compressed)
	for _, file := range []string{"README.md", name} {
		if err := files.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// provided returns which programs were built after an attempt to download all of them from a server.
func provided(t *testing.T, server string) (folder string, built []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("there are no official server programs for this system")
	}
	t.Setenv(downloadsVariable, server)
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	compile := func(_ context.Context, _ versions, _ string, programs []string) error {
		built = programs
		return nil
	}
	p := provider{folder: filepath.Join(t.TempDir(), "programs"), versions: someVersions, compile: compile}
	if err := p.provide(t.Context(), []string{etcd, apiserver, controllerManager}); err != nil {
		t.Fatal(err)
	}
	return p.folder, built
}

func TestOfficialReleasesAreUsed(t *testing.T) {
	files := releases(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := files[r.URL.Path]
		if !found {
			http.NotFound(w, r)
		}
		_, _ = w.Write(content)
	}))
	defer server.Close()
	folder, built := provided(t, server.URL)
	if len(built) > 0 {
		t.Errorf("%v were built although they can be downloaded", built)
	}
	for _, name := range []string{etcd, apiserver, controllerManager} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(content) != "the program "+name {
			t.Errorf("%s is %q (%v)", name, content, err)
		}
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s cannot be run: %v (%v)", name, info.Mode(), err)
		}
	}
}

func TestRefusedDownloadsAreBuilt(t *testing.T) {
	for name, change := range map[string]func(path string, w http.ResponseWriter, content []byte){
		"another content than the checksum's": func(_ string, w http.ResponseWriter, content []byte) {
			if len(content) > sha256.Size*2 || bytes.HasPrefix(content, []byte("the")) {
				content = append([]byte{'x'}, content[1:]...)
			}
			_, _ = w.Write(content)
		},
		"a page in place of a checksum": func(_ string, w http.ResponseWriter, _ []byte) {
			_, _ = w.Write([]byte("<html>sign in</html>"))
		},
		"forbidden": func(_ string, w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusForbidden) },
		"cut off": func(path string, w http.ResponseWriter, content []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2])
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := releases(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				change(r.URL.Path, w, files[r.URL.Path])
			}))
			defer server.Close()
			folder, built := provided(t, server.URL)
			if want := []string{etcd, apiserver, controllerManager}; !slices.Equal(built, want) {
				t.Errorf("built %v, want %v", built, want)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("the folder has %v (%v), want nothing", left, err)
			}
		})
	}
}

func TestNoInternetCostsASecond(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	started := time.Now()
	if _, built := provided(t, server.URL); len(built) != 3 {
		t.Errorf("built %v, want all", built)
	}
	if took := time.Since(started); took > connectTimeout {
		t.Errorf("a server that is not there cost %s", took)
	}
}

func TestNoDownloadsWhereTheyAreOff(t *testing.T) {
	if _, built := provided(t, "off"); len(built) != 3 {
		t.Errorf("built %v, want all", built)
	}
}

func TestInstalledEnvtestIsUsed(t *testing.T) {
	_, _ = provided(t, "off") // for the environment
	data := os.Getenv("XDG_DATA_HOME")
	for _, version := range []string{"1.36.11", "1.37.9", "1.37.10", "1.37.10-beta"} {
		assets := filepath.Join(data, "kubebuilder-envtest", "k8s", version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
		if version == "1.37.10-beta" {
			assets += "x"
		}
		if err := os.MkdirAll(assets, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{etcd, apiserver} {
			if err := os.WriteFile(filepath.Join(assets, name), []byte(version), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := t.TempDir()
	missing := linkInstalled(folder, someVersions, []string{etcd, apiserver, controllerManager})
	if !slices.Equal(missing, []string{controllerManager}) {
		t.Errorf("missing %v, want %s", missing, controllerManager)
	}
	content, err := os.ReadFile(filepath.Join(folder, apiserver))
	if err != nil || string(content) != "1.37.10" {
		t.Errorf("kube-apiserver is of version %q (%v), want 1.37.10", content, err)
	}
}
