package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// testdata/cosign.key is of `cosign generate-key-pair`, for these tests only.
const (
	cosignKey      = "testdata/cosign.key"
	cosignPassword = "none-at-all"
)

// publicKey is what belongs to cosignKey.
func publicKey(t *testing.T) *ecdsa.PublicKey {
	t.Helper()
	block, _ := pem.Decode(must(os.ReadFile("testdata/cosign.pub")))
	key, ok := must(x509.ParsePKIXPublicKey(block.Bytes)).(*ecdsa.PublicKey)
	if !ok {
		t.Fatal("the key is another one")
	}
	return key
}

func verified(key *ecdsa.PublicKey, content, signature []byte) bool {
	digest := sha256.Sum256(content)
	return ecdsa.VerifyASN1(key, digest[:], signature)
}

// TestReadKey: keys of cosign's and of openssl's are read; what is no ECDSA key on P-256 is refused, and so is a password that opens nothing.
func TestReadKey(t *testing.T) {
	p256 := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sealed := must(os.ReadFile(cosignKey))
	block, _ := pem.Decode(sealed)
	costly := bytes.Replace(block.Bytes, []byte(`"N":`), []byte(`"N":99`), 1)
	file := func(kind string, content []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	}
	for name, c := range map[string]struct {
		content   []byte
		password  string
		want      *ecdsa.PublicKey
		wantError string
	}{
		"SEC 1":                 {file("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p256))), "", &p256.PublicKey, ""},
		"SEC 1 with parameters": {append(file("EC PARAMETERS", []byte{6, 0}), file("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p256)))...), "", &p256.PublicKey, ""},
		"PKCS #8":               {file("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p256))), "", &p256.PublicKey, ""},
		"cosign":                {sealed, cosignPassword, publicKey(t), ""},
		"another password":      {sealed, "guess", nil, "COSIGN_PASSWORD"},
		"too costly":            {file(block.Type, costly), cosignPassword, nil, "unsupported scrypt parameters"},
		"another curve":         {file("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p384))), "", nil, "P-256"},
		"RSA":                   {file("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(must(rsa.GenerateKey(rand.Reader, 2048))))), "", nil, "P-256"},
		"Ed25519":               {file("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(edwards))), "", nil, "P-256"},
		"a public key":          {must(os.ReadFile("testdata/cosign.pub")), "", nil, "PUBLIC KEY"},
		"no PEM":                {[]byte("key"), "", nil, "no private key"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readKey(path, c.password)
		if c.wantError != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantError) {
				t.Errorf("%s: got %v", name, err)
			}
		} else if err != nil || !got.key.PublicKey.Equal(c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// sealed are the charts of a release, sealed with a key, and all its files.
func sealed(t *testing.T, key *signer) (string, map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	o := options{charts: "../../../deploy/charts", out: filepath.Join(dir, "charts"), version: version, commit: strings.Repeat("0a", 20), time: made, architectures: []string{"amd64"}, defaults: []byte("profile: gardener\n"), signer: key}
	if err := o.writeCharts([]string{"resource-manager", "admission-controller"}); err != nil {
		t.Fatal(err)
	}
	o.out = dir
	if err := o.seal(nil); err != nil {
		t.Fatal(err)
	}
	return dir, must(filesBelow(dir))
}

// tags are what a layout has, by tag.
func tags(t *testing.T, dir string) (map[string]v1.Descriptor, layout.Path) {
	t.Helper()
	path := layout.Path(dir)
	found := map[string]v1.Descriptor{}
	for _, d := range must(must(path.ImageIndex()).IndexManifest()).Manifests {
		found[d.Annotations[refName]] = d
	}
	return found, path
}

// TestSeal: signature, attestation, provenance and checksums are what their specifications say, and the public key verifies them.
func TestSeal(t *testing.T) {
	key := must(readKey(cosignKey, cosignPassword))
	public := publicKey(t)
	dir, files := sealed(t, key)
	if _, again := sealed(t, key); !maps.EqualFunc(files, again, bytes.Equal) {
		t.Error("sealed again it is another release")
	}
	for _, name := range []string{checksums, provenanceFile} {
		if !verified(public, files[name], must(base64.StdEncoding.DecodeString(string(files[name+".sig"])))) {
			t.Errorf("%s: the signature is wrong", name)
		}
	}
	for _, name := range []string{"resource-manager", "admission-controller"} {
		found, path := tags(t, filepath.Join(dir, "charts", name))
		digest := found["1.2.3"].Digest
		payload, annotations := single(t, path, found["sha256-"+digest.Hex+".sig"], string(simpleSigningType))
		if want := fmt.Sprintf(`{"critical":{"identity":{"docker-reference":"charts/%s"},"image":{"docker-manifest-digest":"%s"},"type":"cosign container image signature"},"optional":{"version":"v1.2.3"}}`, name, digest); string(payload) != want {
			t.Errorf("%s: signed is %s", name, payload)
		}
		if !verified(public, payload, must(base64.StdEncoding.DecodeString(annotations["dev.cosignproject.cosign/signature"]))) {
			t.Errorf("%s: the signature is wrong", name)
		}
		enveloped, annotations := single(t, path, found["sha256-"+digest.Hex+".att"], string(envelopeType))
		if annotations["predicateType"] != "https://slsa.dev/provenance/v1" {
			t.Errorf("%s: got %v", name, annotations)
		}
		if said := opened(t, public, enveloped); !bytes.Equal(said, files[provenanceFile]) {
			t.Errorf("%s: said is %s", name, said)
		}
		document := must(must(path.Image(found[""].Digest)).Manifest())
		if document.Subject == nil || document.Subject.Digest != digest || document.Config.MediaType != "application/vnd.in-toto+json" {
			t.Errorf("%s: got %+v", name, document)
		}
	}
	_, plain := sealed(t, nil)
	for name := range plain {
		if strings.HasSuffix(name, ".sig") {
			t.Errorf("without a key there is %s", name)
		}
	}
	if found, _ := tags(t, filepath.Join(dir, "charts", "resource-manager")); len(found) != 4 {
		t.Errorf("got %v", found)
	}
}

// single is the one layer of an image, and its annotations.
func single(t *testing.T, path layout.Path, of v1.Descriptor, kind string) ([]byte, map[string]string) {
	t.Helper()
	image := must(path.Image(of.Digest))
	manifest := must(image.Manifest())
	if len(manifest.Layers) != 1 || string(manifest.Layers[0].MediaType) != kind || manifest.Config.MediaType != "application/vnd.oci.image.config.v1+json" {
		t.Fatalf("got %+v", manifest)
	}
	return must(io.ReadAll(must(must(image.Layers())[0].Compressed()))), manifest.Layers[0].Annotations
}

// opened is what a signed envelope has (DSSE 1.0).
func opened(t *testing.T, key *ecdsa.PublicKey, enveloped []byte) []byte {
	t.Helper()
	var e struct {
		PayloadType string `json:"payloadType"`
		Payload     string `json:"payload"`
		Signatures  []struct {
			KeyID string `json:"keyid"`
			Sig   string `json:"sig"`
		} `json:"signatures"`
	}
	if err := json.Unmarshal(enveloped, &e); err != nil || len(e.Signatures) != 1 || e.PayloadType != "application/vnd.in-toto+json" {
		t.Fatalf("got %v, %s", err, enveloped)
	}
	payload := must(base64.StdEncoding.DecodeString(e.Payload))
	text := fmt.Sprintf("DSSEv1 28 application/vnd.in-toto+json %d %s", len(payload), payload)
	if !verified(key, []byte(text), must(base64.StdEncoding.DecodeString(e.Signatures[0].Sig))) {
		t.Error("the signature of the envelope is wrong")
	}
	return payload
}

// TestProvenance: the statement names everything in the release, the commit, and what decided about the content; it has no time.
func TestProvenance(t *testing.T) {
	dir, files := sealed(t, nil)
	var s statement
	if err := json.Unmarshal(files[provenanceFile], &s); err != nil {
		t.Fatal(err)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("got %+v", s)
	}
	found, _ := tags(t, filepath.Join(dir, "charts", "admission-controller"))
	var names []string
	for _, subject := range s.Subject {
		names = append(names, subject.Name)
		if subject.Name == "charts/admission-controller" && subject.Digest["sha256"] != found["1.2.3"].Digest.Hex {
			t.Errorf("got %+v", subject)
		}
		if content, isFile := files[subject.Name]; isFile && subject.Digest["sha256"] != fmt.Sprintf("%x", sha256.Sum256(content)) {
			t.Errorf("got %+v", subject)
		}
	}
	if want := []string{"charts/admission-controller", "charts/resource-manager", "charts/admission-controller-1.2.3.tgz", "charts/resource-manager-1.2.3.tgz"}; !slices.Equal(names, want) {
		t.Errorf("the subjects are %q", names)
	}
	d := s.Predicate.Definition
	if d.External["version"] != version || d.External["defaults"] != "profile: gardener\n" || len(d.Resolved) != 1 || d.Resolved[0].Digest["gitCommit"] != strings.Repeat("0a", 20) || d.Type == "" || s.Predicate.Details.Builder.ID == "" {
		t.Errorf("got %+v", s.Predicate)
	}
}

// TestSealOnce: what is sealed, of another version or not there is refused.
func TestSealOnce(t *testing.T) {
	dir, _ := sealed(t, nil)
	for name, o := range map[string]options{
		"sealed":          {out: dir, version: version, commit: strings.Repeat("0a", 20), signer: must(readKey(cosignKey, cosignPassword))},
		"another version": {out: dir, version: "v1.2.4", commit: strings.Repeat("0a", 20), architectures: []string{"amd64", "arm64"}},
		"nothing":         {out: t.TempDir(), version: version, commit: strings.Repeat("0a", 20)},
		"no commit":       {out: dir, version: version, commit: "0a0a0a0"},
	} {
		if err := o.seal(nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
