package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// provenanceFile has the provenance of everything in a release.
const provenanceFile = "provenance.intoto.json"

// released is something in a layout that has the tag of the release.
type released struct {
	name       string
	path       layout.Path
	descriptor v1.Descriptor
}

// seal writes the provenance of everything in a release, signs it if there is a key, and writes the checksums of all
// files.
func (o *options) seal([]string) error {
	if o.commit == "" || len(o.commit) < 40 {
		return errors.New("the provenance needs the whole name of a commit")
	}
	all, err := o.released()
	if err != nil {
		return err
	}
	files, err := checksumsOf(o.out, "charts/*.tgz", "images/*.cdx.json", "client/"+client+"_*")
	if err != nil {
		return err
	}
	var subjects []resource
	for _, r := range all {
		subjects = append(subjects, resource{Name: r.name, Digest: map[string]string{"sha256": r.descriptor.Digest.Hex}})
	}
	for _, name := range sorted(files) {
		subjects = append(subjects, resource{Name: name, Digest: map[string]string{"sha256": files[name]}})
	}
	said, err := o.provenance(subjects)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, provenanceFile), said, 0o644); err != nil {
		return err
	}
	for _, r := range all {
		if err := o.sealOne(r, said); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Printf("%s %s\n", r.name, r.descriptor.Digest)
	}
	if err := writeChecksums(o.out, checksums, "charts/*.tgz", "charts/*/index.json", "client/*.*", "images/*.cdx.json", "images/*/index.json", provenanceFile); err != nil {
		return err
	}
	return o.signFiles(provenanceFile, checksums)
}

// released returns the images and the charts of a release, by their names.
func (o *options) released() ([]released, error) {
	found := map[string]released{}
	for kind, tag := range map[string]string{"images": o.version, "charts": o.chartVersion()} {
		layouts, err := filepath.Glob(filepath.Join(o.out, kind, "*", "index.json"))
		if err != nil {
			return nil, err
		}
		for _, file := range layouts {
			name := strings.TrimPrefix(kind+"/"+filepath.Base(filepath.Dir(file)), "images/")
			if found[name], err = o.tagged(name, layout.Path(filepath.Dir(file)), tag); err != nil {
				return nil, err
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no images and no charts", o.out)
	}
	var all []released
	for _, name := range sorted(found) {
		all = append(all, found[name])
	}
	return all, nil
}

// tagged returns the content of a layout under a tag. The layout may also have lists of parts, but nothing else,
// because a sealed layout must not be sealed again.
func (o *options) tagged(name string, path layout.Path, tag string) (released, error) {
	index, err := path.ImageIndex()
	if err != nil {
		return released{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return released{}, err
	}
	r := released{name: name, path: path}
	for _, d := range manifest.Manifests {
		if d.Annotations[refName] == tag {
			r.descriptor = d
		}
	}
	if r.descriptor.Size == 0 || len(manifest.Manifests) > 1+len(o.architectures) {
		return r, fmt.Errorf("%s is not what was just made with version %s", path, o.version)
	}
	return r, nil
}

// sealOne adds a statement about the content of a layout to it: as a document that refers to the content, and signed
// where cosign looks.
func (o *options) sealOne(r released, said []byte) error {
	document, err := attach(said, statementMediaType, r.descriptor)
	if err != nil {
		return err
	}
	if err := r.path.AppendImage(document); err != nil || o.signer == nil {
		return err
	}
	if err := o.signer.signImage(r.path, r.name, o.version, r.descriptor.Digest); err != nil {
		return err
	}
	enveloped, err := o.signer.envelop(said)
	if err != nil {
		return err
	}
	return attest(r.path, r.descriptor.Digest, "att", blob{envelopeType, enveloped}, map[string]string{signatureAnnotation: "", "predicateType": provenanceType})
}

// signFiles writes the signature of each file beside it, as cosign verify-blob reads it, and replaces an older one.
func (o *options) signFiles(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(o.out, name+".sig")); err != nil || o.signer == nil {
			return err
		}
		content, err := os.ReadFile(filepath.Join(o.out, name))
		if err != nil {
			return err
		}
		signature, err := o.signer.sign(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.out, name+".sig"), []byte(base64.StdEncoding.EncodeToString(signature)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
