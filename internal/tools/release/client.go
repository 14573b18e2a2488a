package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	client = "kubectl-espalier"
	// clientChecksums and krewManifest are the names of files next to the archives of the client.
	clientChecksums = "checksums.txt"
	krewManifest    = "espalier.yaml"
	// completer is the program that kubectl runs to complete arguments, where it is in the PATH.
	completer        = "kubectl_complete-espalier"
	completerContent = "#!/bin/sh\nexec kubectl-espalier __complete \"$@\"\n"
)

// completions are the files with the completion of each shell.
var completions = map[string]string{"bash": client + ".bash", "zsh": "_" + client, "fish": client + ".fish", "powershell": client + ".ps1"}

// clientOptions are the paths of the parts of the client's archives, and the URL from which users download the
// archives.
type clientOptions struct {
	platforms, runs, license, baseURL string
}

func clientFlags(set *flag.FlagSet, o *options, _ *given) {
	set.StringVar(&o.binaries, "binaries", "bin/client", "folder with <os>-<architecture>/"+client)
	set.StringVar(&o.client.platforms, "platforms", "", "<os>/<architecture> of each archive, with spaces between")
	set.StringVar(&o.client.runs, "runs", "bin/"+client, "client that runs on this machine, which writes man pages and completions")
	set.StringVar(&o.client.license, "license", "LICENSE", "file with the licence")
	set.StringVar(&o.client.baseURL, "base-url", "", "URL of the folder with the archives, {version} stands for the version; without it there is no krew manifest")
}

// krewPlugin is the part of krew's manifest that this plugin needs.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// writeClient writes an archive of the client for each platform, their checksums and the manifest by which krew installs them.
func (o *options) writeClient([]string) error {
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	shared, err := o.sharedFiles()
	if err != nil {
		return err
	}
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "espalier"},
		Spec: krewSpec{
			Version: o.version, Homepage: source, ShortDescription: "Explain objects of ManagedResources",
			Description: "Shows whose an object is, how it differs from its manifest and who changed it.\n",
		},
	}
	for _, platform := range strings.Fields(o.client.platforms) {
		system, architecture, _ := strings.Cut(platform, "/")
		archive, err := o.writeArchive(system, architecture, shared)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		archive.Selector.MatchLabels = map[string]string{"os": system, "arch": architecture}
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, archive)
		fmt.Printf("%s %s\n", filepath.Join(o.out, path.Base(archive.URI)), archive.SHA256)
	}
	if err := writeChecksums(o.out, clientChecksums, client+"_*"); err != nil || o.client.baseURL == "" {
		return err
	}
	if base, err := url.Parse(o.client.baseURL); err != nil || base.Scheme != "https" || base.Host == "" {
		return fmt.Errorf("--base-url %q is no URL that begins with https://", o.client.baseURL)
	}
	content, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, krewManifest), content, 0o644)
}

// sharedFiles returns the files that the archives of all platforms have: the licence, completions and man pages.
func (o *options) sharedFiles() ([]file, error) {
	dir, err := os.MkdirTemp("", "client-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command(o.client.runs, "man", "--dir", filepath.Join(dir, "man")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("man pages: %w: %s", err, out)
	}
	contents, err := filesBelow(dir)
	if err != nil {
		return nil, err
	}
	for shell, name := range completions {
		if contents["completions/"+name], err = exec.Command(o.client.runs, "completion", shell).Output(); err != nil {
			return nil, fmt.Errorf("completion of %s: %w", shell, err)
		}
	}
	if contents["LICENSE"], err = os.ReadFile(o.client.license); err != nil {
		return nil, err
	}
	return plainFiles("", contents), nil
}

// writeArchive writes the archive of a platform, and returns its part of krew's manifest.
func (o *options) writeArchive(system, architecture string, shared []file) (krewPlatform, error) {
	binary, suffix, pack := client, ".tar.gz", tarGzip
	if system == "windows" {
		binary, suffix, pack = client+".exe", ".zip", zipped
	}
	content, err := os.ReadFile(filepath.Join(o.binaries, system+"-"+architecture, binary))
	if err != nil {
		return krewPlatform{}, err
	}
	files := []file{{name: binary, mode: 0o755, content: content}}
	if system != "windows" {
		files = append(files, file{name: completer, mode: 0o755, content: []byte(completerContent)})
	}
	packed, err := pack(append(files, shared...), o.time)
	if err != nil {
		return krewPlatform{}, err
	}
	digest := sha256.Sum256(packed)
	name := fmt.Sprintf("%s_%s_%s_%s%s", client, o.version, system, architecture, suffix)
	base := strings.TrimSuffix(strings.ReplaceAll(o.client.baseURL, "{version}", o.version), "/")
	return krewPlatform{URI: base + "/" + name, SHA256: hex.EncodeToString(digest[:]), Bin: binary}, os.WriteFile(filepath.Join(o.out, name), packed, 0o644)
}
