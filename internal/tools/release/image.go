package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	source  = "https://github.com/espalier-project/espalier"
	license = "Apache-2.0"
	// user is the user ID of images that do not run as root, as in the images that these replace (DPL-61).
	user = 65532
	// certificates is the path at which Go looks for the certificates of public authorities.
	certificates = "etc/ssl/certs/ca-certificates.crt"
	// sbomType is the media type of a list of parts.
	sbomType = types.MediaType("application/vnd.cyclonedx+json")
)

var descriptions = map[string]string{
	"resource-manager":      "Applies ManagedResources to a target cluster and keeps them so",
	"admission-controller":  "Decides in the garden cluster what seeds may do",
	"node-agent-authorizer": "Decides what the agents of a shoot's nodes may do",
}

// write writes the layout of an executable: an index of its images, under the version as name, and a list of parts that refers to each image.
// It returns the digest of the index.
func (o *options) write(executable string) (v1.Hash, error) {
	path, err := newLayout(filepath.Join(o.out, executable))
	if err != nil {
		return v1.Hash{}, err
	}
	labels := o.labels(executable)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range o.architectures {
		binary := filepath.Join(o.binaries, "linux-"+architecture, executable)
		image, err := o.image(binary, executable, architecture, labels)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
		parts, err := o.sbom(binary)
		if err != nil {
			return v1.Hash{}, err
		}
		if err := os.WriteFile(filepath.Join(o.out, executable+"-linux-"+architecture+".cdx.json"), parts, 0o644); err != nil {
			return v1.Hash{}, err
		}
		subject, err := partial.Descriptor(image)
		if err != nil {
			return v1.Hash{}, err
		}
		attached, err := attach(parts, sbomType, *subject)
		if err != nil {
			return v1.Hash{}, err
		}
		if err := path.AppendImage(attached); err != nil {
			return v1.Hash{}, err
		}
	}
	annotated, ok := mutate.Annotations(index, labels).(v1.ImageIndex)
	if !ok {
		return v1.Hash{}, fmt.Errorf("annotations made no index")
	}
	if err := path.AppendIndex(annotated, layout.WithAnnotations(map[string]string{refName: o.version})); err != nil {
		return v1.Hash{}, err
	}
	return annotated.Digest()
}

func (o *options) labels(executable string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         executable,
		"org.opencontainers.image.description":   descriptions[executable],
		"org.opencontainers.image.version":       o.version,
		"org.opencontainers.image.revision":      o.commit,
		"org.opencontainers.image.created":       o.time.Format(time.RFC3339),
		"org.opencontainers.image.source":        source,
		"org.opencontainers.image.documentation": source + "/tree/main/docs",
		"org.opencontainers.image.licenses":      license,
	}
}

// image returns the image of one architecture.
func (o *options) image(binary, executable, architecture string, labels map[string]string) (v1.Image, error) {
	if err := checkStatic(binary, architecture); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		by    string
		files []file
	}{{"user, certificates, defaults, /tmp", o.base()}, {executable, []file{{name: executable, mode: 0o555, content: content}}}} {
		layer, err := newLayer(part.files)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: o.time}, CreatedBy: part.by}}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: o.time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/" + executable}, WorkingDir: "/", Labels: labels,
		Env: []string{"PATH=/", "SSL_CERT_FILE=/" + certificates},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, labels).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotations made no image")
	}
	return annotated, nil
}

// checkStatic refuses an executable that would not run in an image without libraries, or on another architecture.
func checkStatic(binary, architecture string) error {
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[architecture]; f.Machine != want {
		return fmt.Errorf("%s is for %s, not for %s", binary, f.Machine, architecture)
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("%s is not linked statically", binary)
		}
	}
	return nil
}

// defaults is the file that the executables read below their configuration.
const defaults = "etc/espalier/defaults.yaml"

// base returns the files that every image has in addition to its executable.
func (o *options) base() []file {
	return []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/espalier/", mode: 0o755},
		{name: defaults, mode: 0o444, content: o.defaults},
		{name: "etc/group", mode: 0o444, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user)},
		{name: "etc/passwd", mode: 0o444, content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/:/sbin/nologin\n", user, user)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: certificates, mode: 0o444, content: authorities()},
		{name: "tmp/", mode: 0o1777},
	}
}

// authorities returns the certificates of the public authorities that Mozilla trusts without condition, because a
// file of certificates cannot have conditions. An API server behind one of them needs no certificate in a kubeconfig.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// newLayer packs files. The layer depends only on the files, not on the time or the user.
func newLayer(files []file) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := writeTar(&packed, files, time.Unix(0, 0)); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
}
