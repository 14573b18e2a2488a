package builders

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
)

// CertificateRequest begins a CertificateSigningRequest of a user with usages, which are separated by ", ".
func CertificateRequest(name, user, organization, usages string) *Object {
	return New("certificates.k8s.io/v1", "CertificateSigningRequest", "", name).With("spec.usages", strings.Split(usages, ", ")).
		With("spec.request", Request(&x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{organization}}}))
}

// Request is a request for a certificate with a key of its own, in PEM.
func Request(template *x509.CertificateRequest) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // There is no randomness.
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		panic(err) // A test gave a template that makes no request.
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
