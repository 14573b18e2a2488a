package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// Section 2.3: a request is for a client certificate of a seed or a self-hosted shoot if its subject, names and usages all are as required. A
// readable request that is for something else gets a reason; of an unreadable one nothing follows.
func TestClientsOfCertificateRequests(t *testing.T) {
	const seeds, shoots = "gardener.cloud:system:seeds", "gardener.cloud:system:shoots"
	const seed, shoot = "gardener.cloud:system:seed:", "gardener.cloud:system:shoot:"
	subject := func(organization, name string) x509.CertificateRequest {
		return x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: strings.Fields(organization)}}
	}
	with := func(change func(*x509.CertificateRequest)) x509.CertificateRequest {
		r := subject(seeds, seed+"a")
		change(&r)
		return r
	}
	usage := slices.Clone(wantedUsages)
	slices.Reverse(usage)
	for name, tc := range map[string]struct {
		request     x509.CertificateRequest
		usages      []certificatesv1.KeyUsage
		seed, shoot string // The client, or else why the request is for none.
	}{
		"2.3/a seed":                           {subject(seeds, seed+"a"), usage, "a", "subject's organization is not set to [" + shoots + "]"},
		"2.3/a shoot":                          {subject(shoots, shoot+"n:s"), usage, "subject's organization is not set to [" + seeds + "]", "n:s"},
		"2.3/no organization":                  {subject("", seed+"a"), usage, "subject's organization is not set to [" + seeds + "]", "subject's organization is not set to [" + shoots + "]"},
		"2.3/two organizations":                {subject(seeds+" system:masters", seed+"a"), usage, "subject's organization is not set to [" + seeds + "]", "subject's organization is not set to [" + shoots + "]"},
		"2.3/another common name":              {subject(seeds, "a"), usage, `subject's common name does not start with "` + seed + `"`, "subject's organization is not set to [" + shoots + "]"},
		"2.3/a shoot with another common name": {subject(shoots, "n:s"), usage, "subject's organization is not set to [" + seeds + "]", `subject's common name does not start with "` + shoot + `"`},
		"2.3/no seed's name":                   {subject(seeds, seed), usage, "subject's common name does not name a seed", "subject's organization is not set to [" + shoots + "]"},
		"2.3/no shoot's namespace":             {subject(shoots, shoot+":s"), usage, "subject's organization is not set to [" + seeds + "]", `subject's common name must follow this structure: "` + shoot + `<namespace>:<name>"`},
		"2.3/no shoot's name":                  {subject(shoots, shoot+"n:"), usage, "subject's organization is not set to [" + seeds + "]", `subject's common name must follow this structure: "` + shoot + `<namespace>:<name>"`},
		"2.3/a shoot of three parts":           {subject(shoots, shoot+"n:s:x"), usage, "subject's organization is not set to [" + seeds + "]", `subject's common name must follow this structure: "` + shoot + `<namespace>:<name>"`},
		"2.3/a DNS name":                       {with(func(r *x509.CertificateRequest) { r.DNSNames = []string{"x"} }), usage, "DNSNames, EmailAddresses and IPAddresses fields must be empty", ""},
		"2.3/an e-mail address":                {with(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }), usage, "DNSNames, EmailAddresses and IPAddresses fields must be empty", ""},
		"2.3/an IP address":                    {with(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }), usage, "DNSNames, EmailAddresses and IPAddresses fields must be empty", ""},
		"2.3/a URI":                            {with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "https", Host: "x"}} }), usage, "DNSNames, EmailAddresses and IPAddresses fields must be empty", ""},
		"2.3/a usage is missing":               {subject(seeds, seed+"a"), wantedUsages[:2], "key usages are not set to [key encipherment digital signature client auth]", ""},
		"2.3/another usage":                    {subject(seeds, seed+"a"), append(slices.Clone(wantedUsages), certificatesv1.UsageServerAuth), "key usages are not set to [key encipherment digital signature client auth]", ""},
		"2.3/a usage twice":                    {subject(seeds, seed+"a"), append(slices.Clone(wantedUsages), wantedUsages...), "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := builders.Request(&tc.request)
			got, err := SeedOfCertificateRequest(request, tc.usages)
			checkClient(t, "seed", got, err, tc.seed)
			if tc.shoot != "" {
				namespace, name, err := ShootOfCertificateRequest(request, tc.usages)
				checkClient(t, "shoot", strings.Trim(namespace+":"+name, ":"), err, tc.shoot)
			}
		})
	}
	readable := string(builders.Request(&x509.CertificateRequest{Subject: pkix.Name{CommonName: seed + "a", Organization: []string{seeds}}}))
	for name, request := range map[string]string{
		"2.3/no PEM": "x", "2.3/garbage in it": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
		"2.3/another block": strings.ReplaceAll(readable, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"),
	} {
		got, err := SeedOfCertificateRequest([]byte(request), wantedUsages)
		expect.True(t, err != nil && !errors.Is(err, ErrNotClient) && got == "", "%s: got seed %q, %v", name, got, err)
		if name == "2.3/garbage in it" {
			continue
		}
		if _, _, err = ShootOfCertificateRequest([]byte(request), wantedUsages); err == nil || err.Error() != "PEM block type must be CERTIFICATE REQUEST" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// checkClient compares a client with the one wanted, or the error with the reason wanted.
func checkClient(t *testing.T, kind, got string, err error, want string) {
	t.Helper()
	switch {
	case err == nil && got == want:
	case err != nil && err.Error() == want && errors.Is(err, ErrNotClient) && got == "":
	default:
		t.Errorf("2.3: %s: got %q, error %v, want %q", kind, got, err, want)
	}
}

// B-4: names follow the form of DNS subdomains, to the last character of each range.
func TestObjectNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "z": true, "0": true, "9": true, "a-z": true, "a.z": true, "a--z": true, "az09": true, strings.Repeat("a", 253): true,
		"": false, strings.Repeat("a", 254): false, ".": false, "-": false, ".a": false, "-a": false, "a.": false, "a-": false, "a..b": false,
		"a-.b": false, "a.-b": false, "A": false, "a_b": false, "a/b": false, "a:b": false, "a`": false, "a{": false, "ä": false,
	} {
		expect.Equal(t, isObjectName(name), want, "B-4: %.20q", name)
	}
}
