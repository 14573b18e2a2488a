package manifests

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// signed returns a certificate as PEM.
func signed(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.Succeed(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// authorityFile returns a file with a content.
func authorityFile(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	must.Succeed(t, os.WriteFile(file, content, 0o600))
	return file
}

// TestAuthority: only certificates get into a caBundle, which everybody who reads a webhook configuration reads.
func TestAuthority(t *testing.T) {
	a, b := signed(t), signed(t)
	const text = "Certificate:\n    Issuer: CN = a\n"
	for name, content := range map[string][]byte{
		"certificates":                          joined(a, b),
		"a text before and after a certificate": joined([]byte(text), a, []byte(text), b, []byte("password: p\n")),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := authority(authorityFile(t, content))
			must.Succeed(t, err)
			expect.DeepEqual(t, string(got), string(joined(a, b)))
		})
	}
}

// TestNoAuthority: the command refuses each file that has something else, and its error tells the file and the type, and no content.
func TestNoAuthority(t *testing.T) {
	certificate := signed(t)
	hidden := []byte("a private key, as bytes")
	block := func(kind string) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: hidden}) }
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"a private key":                 {block("EC PRIVATE KEY"), `found a block of type "EC PRIVATE KEY"`},
		"a key after a certificate":     {joined(certificate, block("PRIVATE KEY")), `found a block of type "PRIVATE KEY"`},
		"a key before a certificate":    {joined(block("RSA PRIVATE KEY"), certificate), `found a block of type "RSA PRIVATE KEY"`},
		"a request for a certificate":   {block("CERTIFICATE REQUEST"), `found a block of type "CERTIFICATE REQUEST"`},
		"a key by the type CERTIFICATE": {joined(certificate, block("CERTIFICATE")), `block 2 of type "CERTIFICATE" is no certificate`},
		"a key that is cut off":         {joined(certificate, block("PRIVATE KEY")[:60]), "1 of 2 blocks are no PEM"},
		"no PEM":                        {hidden, "want certificates as PEM, found no block"},
		"nothing":                       {nil, "want certificates as PEM, found no block"},
		"too much":                      {bytes.Repeat([]byte("\n"), maxAuthority+1), "larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &settings{}
			cfg.Webhooks.Names.Enabled = true
			file := authorityFile(t, c.content)
			got, err := printed(t, executable(cfg, nil).Webhooks(), "--url=https://h", "--ca-file="+file)
			if err == nil || !strings.Contains(err.Error(), "--ca-file: "+file+": ") || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			expect.Equal(t, got, "", "printed")
			for _, content := range []string{string(hidden), base64.StdEncoding.EncodeToString(hidden)} {
				if err != nil && strings.Contains(err.Error(), content) {
					t.Errorf("the error tells content: %v", err)
				}
			}
		})
	}
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
