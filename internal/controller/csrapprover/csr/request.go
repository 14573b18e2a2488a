// Package csr decides about CertificateSigningRequests of kubelets and node agents: it approves or denies them, or
// ignores those for other approvers.
//
// The rules are in the contract's section on the CSR approver; Decide follows its tables. A decision depends on the
// request, and on Nodes and Machines, which a View reads. A denial is final and an approval may depend on the absence
// of an object, so a View must read the current objects, and not a cache.
package csr

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Request has the parts of a CertificateSigningRequest that a decision needs.
type Request struct {
	Signer       string
	Username     string
	Groups       []string
	Usages       []certificatesv1.KeyUsage
	Subject      string // The common name.
	Organization []string
	DNSNames     []string
	IPAddresses  []string // In canonical form; IPv4-mapped IPv6 is IPv4.
	// Others is the number of subject alternative names that are e-mail addresses or URIs.
	Others int
}

// Concerned reports whether the approver handles requests for a signer (CSR-1).
func Concerned(signer string) bool {
	return signer == certificatesv1.KubeletServingSignerName || signer == certificatesv1.KubeAPIServerClientSignerName
}

// Final reports whether a request is already decided (CSR-2).
func Final(object *certificatesv1.CertificateSigningRequest) bool {
	return len(object.Status.Certificate) > 0 || slices.ContainsFunc(object.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
	})
}

// Strip removes the fields that the approver does not need. Of requests that are final or for other approvers, it
// keeps the name, the signer, and whether the request is final.
func Strip(object *certificatesv1.CertificateSigningRequest) {
	object.ManagedFields, object.Spec.Extra = nil, nil
	final := Final(object)
	if final || !Concerned(object.Spec.SignerName) {
		object.Labels, object.Annotations, object.OwnerReferences = nil, nil, nil
		object.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: object.Spec.SignerName}
		object.Status = certificatesv1.CertificateSigningRequestStatus{}
	}
	if final {
		object.Status.Certificate = []byte{0}
	}
}

// Parse returns the parts that a decision needs. Its error describes the form of the request, without its content
// (CSR-3).
func Parse(object *certificatesv1.CertificateSigningRequest) (*Request, error) {
	block, _ := pem.Decode(object.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("unable to parse csr: %w", errors.New("PEM block type must be CERTIFICATE REQUEST"))
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("unable to parse csr: %w", err)
	}
	r := &Request{
		Signer: object.Spec.SignerName, Username: object.Spec.Username, Groups: object.Spec.Groups, Usages: object.Spec.Usages,
		Subject: parsed.Subject.CommonName, Organization: parsed.Subject.Organization, DNSNames: parsed.DNSNames,
		Others: len(parsed.EmailAddresses) + len(parsed.URIs),
	}
	for _, ip := range parsed.IPAddresses {
		address, ok := fromSlice(ip)
		if !ok {
			return nil, errors.New("unable to parse csr: an IP address in the SANs has neither 4 nor 16 bytes")
		}
		r.IPAddresses = append(r.IPAddresses, address)
	}
	return r, nil
}
