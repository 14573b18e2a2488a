package dropin

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/espalier-project/espalier/test/must"
)

// manifests reads documents of testdata, with ${…} filled in.
func manifests(t *testing.T, file string, values map[string]string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	must.Succeed(t, err)
	var pairs []string
	for key, value := range values {
		pairs = append(pairs, "${"+key+"}", value)
	}
	var all []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.NewReplacer(pairs...).Replace(string(content))), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// deploy creates what a file has.
func (a *audited) deploy(t *testing.T, file string, values map[string]string) {
	t.Helper()
	a.create(t, manifests(t, file, values))
}

// create creates objects in place of those that are there by their names.
func (a *audited) create(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		err := a.client.Create(t.Context(), object)
		if apierrors.IsAlreadyExists(err) {
			if object.GetKind() == "Namespace" {
				continue
			}
			must.Succeed(t, a.client.Delete(t.Context(), object.DeepCopy()))
			err = a.client.Create(t.Context(), object)
		}
		if err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// ca returns the certificate that signed an API server's.
func (a *audited) ca(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(a.Dir, "ca.crt"))
	must.Succeed(t, err)
	return content
}

// authority signs the certificates of webhook servers, as gardenlet's secrets manager does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-seed"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must.Succeed(t, err)
	certificate, err := x509.ParseCertificate(der)
	must.Succeed(t, err)
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// serving returns certificate and key of a Service, in base64 (DPL-82).
func (a *authority) serving(t *testing.T, service, namespace string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	full := service + "." + namespace
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: service}, DNSNames: []string{service, full, full + ".svc", full + ".svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, // API servers here know no Services.
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	must.Succeed(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must.Succeed(t, err)
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8)
}

// quoted is text as it is written into a document on one line.
func quoted(text []byte) string {
	return `"` + strings.ReplaceAll(string(bytes.TrimSpace(text)), "\n", `\n`) + `"`
}
