package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/espalier-project/espalier/internal/foreign/names"
)

// ErrNotSeedClient is wrapped by errors that say why a request is readable but not for a gardenlet's certificate.
var ErrNotSeedClient = errors.New("")

// wantedUsages of a client certificate, in any order.
var wantedUsages = []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}

// SeedOfCertificateRequest returns the seed whose gardenlet's client certificate is requested (section 2.3). The error says what is
// wrong; it wraps ErrNotSeedClient if the request is readable.
func SeedOfCertificateRequest(request []byte, usages []certificatesv1.KeyUsage) (string, error) {
	parsed, err := parseRequest(request)
	if err != nil {
		return "", err
	}
	seed, found := strings.CutPrefix(parsed.Subject.CommonName, names.SeedUserPrefix)
	switch {
	case !slices.Equal(parsed.Subject.Organization, []string{names.SeedsGroup}):
		return "", notSeedClient("subject's organization is not set to [%s]", names.SeedsGroup)
	case !found:
		return "", notSeedClient("subject's common name does not start with %q", names.SeedUserPrefix)
	case len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0:
		return "", notSeedClient("DNSNames, EmailAddresses and IPAddresses fields must be empty")
	case !sameUsages(usages):
		return "", notSeedClient("key usages are not set to %v", wantedUsages)
	case !isObjectName(seed):
		return "", notSeedClient("subject's common name does not name a seed")
	}
	return seed, nil
}

func notSeedClient(format string, arguments ...any) error {
	return fmt.Errorf(format+"%w", append(arguments, ErrNotSeedClient)...)
}

func parseRequest(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

func sameUsages(usages []certificatesv1.KeyUsage) bool {
	for _, usage := range usages {
		if !slices.Contains(wantedUsages, usage) {
			return false
		}
	}
	for _, usage := range wantedUsages {
		if !slices.Contains(usages, usage) {
			return false
		}
	}
	return true
}
