package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
)

// ErrNotClient is wrapped by errors about a request that is readable but not for the certificate of a gardenlet.
var ErrNotClient = errors.New("")

// wantedUsages of a client certificate, in any order.
var wantedUsages = []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}

// SeedOfCertificateRequest returns the seed whose gardenlet's client certificate is requested (section 2.3). The
// error describes the problem; it wraps ErrNotClient if the request is readable.
func SeedOfCertificateRequest(request []byte, usages []certificatesv1.KeyUsage) (string, error) {
	seed, err := clientOf(request, usages, wellknown.SeedsGroup, wellknown.SeedUserPrefix)
	if err == nil && !isObjectName(seed) {
		err = notClient("subject's common name does not name a seed")
	}
	if err != nil {
		return "", err
	}
	return seed, nil
}

// ShootOfCertificateRequest does the same for the gardenlet of a self-hosted shoot.
func ShootOfCertificateRequest(request []byte, usages []certificatesv1.KeyUsage) (namespace, name string, err error) {
	shoot, err := clientOf(request, usages, wellknown.ShootsGroup, wellknown.ShootUserPrefix)
	if err != nil {
		return "", "", err
	}
	namespace, name, _ = strings.Cut(shoot, ":")
	if !isObjectName(namespace) || !isObjectName(name) {
		return "", "", notClient("subject's common name must follow this structure: %q", wellknown.ShootUserPrefix+"<namespace>:<name>")
	}
	return namespace, name, nil
}

// clientOf returns the text after the prefix in the common name of a client certificate's request.
func clientOf(request []byte, usages []certificatesv1.KeyUsage, group, prefix string) (string, error) {
	parsed, err := parseRequest(request)
	if err != nil {
		return "", err
	}
	rest, found := strings.CutPrefix(parsed.Subject.CommonName, prefix)
	switch {
	case !slices.Equal(parsed.Subject.Organization, []string{group}):
		return "", notClient("subject's organization is not set to [%s]", group)
	case !found:
		return "", notClient("subject's common name does not start with %q", prefix)
	case len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0:
		return "", notClient("DNSNames, EmailAddresses and IPAddresses fields must be empty")
	case !sets.New(usages...).Equal(sets.New(wantedUsages...)):
		return "", notClient("key usages are not set to %v", wantedUsages)
	}
	return rest, nil
}

func notClient(format string, arguments ...any) error {
	return fmt.Errorf(format+"%w", append(arguments, ErrNotClient)...)
}

func parseRequest(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
