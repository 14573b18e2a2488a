package csr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

const (
	nodeAgentPrefix         = "gardener.cloud:node-agent:machine:"
	nodeAgentsGroup         = "gardener.cloud:node-agents"
	nodeAgentServiceAccount = "system:serviceaccount:kube-system:gardener-node-agent"
	gardenadmPrefix         = "gardener.cloud:gardenadm:shoot:"
	gardenadmGroup          = "gardener.cloud:system:shoots"
	bootstrapPrefix         = "system:bootstrap:"
)

// The usages that the signers accept. They sign no request with other usages.
var (
	servingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	clientUsages  = []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
)

// nodeAgent checks a request for a node agent's client certificate: the machine, then the requester (CSR-36), then
// the requested certificate.
func (d *decision) nodeAgent(ctx context.Context) (string, error) {
	machine := strings.TrimPrefix(d.Subject, nodeAgentPrefix)
	node := machine // Without Machines, the Node has the name of the machine.
	if d.Machines {
		var found bool
		var err error
		if validName(machine) {
			if node, found, err = d.view.Machine(ctx, machine); err != nil {
				return "", fmt.Errorf("error getting machine object with name %q: %w", machine, err)
			}
		}
		if !found {
			return fmt.Sprintf("machine %q does not exist", machine), nil // CSR-31
		}
	}
	reason, err := d.asker(ctx, machine, node)
	if reason != "" || err != nil {
		return reason, err
	}
	return d.clientCertificate(nodeAgentsGroup), nil
}

// asker checks the requester of a machine's certificate. A node agent may request its own certificate only, and other
// requesters may request only the first certificate of a machine (CSR-32 to CSR-35).
func (d *decision) asker(ctx context.Context, machine, node string) (string, error) {
	switch {
	case d.isBootstrap():
		bootstrapped := d.StrictBootstrap && d.Machines && node != ""
		if !bootstrapped {
			var err error
			if _, bootstrapped, err = d.findNode(ctx, node); err != nil {
				return "", err
			}
		}
		if bootstrapped {
			return fmt.Sprintf("Cannot use bootstrap token since gardener-node-agent for machine %q is already bootstrapped", machine), nil
		}
	case strings.HasPrefix(d.Username, nodeAgentPrefix):
		if d.Username != d.Subject {
			return fmt.Sprintf("username %q and commonName %q do not match", d.Username, d.Subject), nil
		}
	case d.ServiceAccount && d.Username == nodeAgentServiceAccount:
		known := node != ""
		if !d.Machines { // Without Machines the Node itself must exist.
			var err error
			if _, known, err = d.findNode(ctx, node); err != nil {
				return "", err
			}
		}
		if !known {
			return "gardener-node-agent service account is allowed to create CSRs for machines with existing nodes only", nil
		}
	default:
		return fmt.Sprintf("username %q is not allowed to create CSRs for a gardener-node-agent", d.Username), nil
	}
	return "", nil
}

func (d *decision) isBootstrap() bool {
	return strings.HasPrefix(d.Username, bootstrapPrefix) || d.BootstrapByKubelet && strings.HasPrefix(d.Username, nodePrefix)
}

// clientCertificate checks the requested groups: only the group of node agents, or no group, is allowed. Otherwise a
// bootstrap token could get a certificate of any group.
func (d *decision) clientCertificate(group string) string {
	if len(d.Organization) > 0 && !slices.Equal(d.Organization, []string{group}) {
		return fmt.Sprintf("organization in CSR is neither empty nor %q", group)
	}
	if d.Others > 0 {
		return "e-mail addresses or URIs in the SANs found"
	}
	return usages(d.Usages, clientUsages, certificatesv1.UsageClientAuth)
}

// gardenadm checks a request for the client certificate of gardenadm in a self-hosted shoot (CSR-37).
func (d *decision) gardenadm() string {
	if !strings.HasPrefix(d.Username, bootstrapPrefix) {
		return fmt.Sprintf("username %q is not allowed to create CSRs for a gardenadm client", d.Username)
	}
	if !slices.Equal(d.Organization, []string{gardenadmGroup}) {
		return "organization in CSR does not match nodes group"
	}
	return d.clientCertificate(gardenadmGroup)
}

// findNode looks up a Node. For a text that cannot be the name of an object, there is no Node.
func (d *decision) findNode(ctx context.Context, name string) ([]corev1.NodeAddress, bool, error) {
	if !validName(name) {
		return nil, false, nil
	}
	addresses, found, err := d.view.Node(ctx, name)
	if err != nil {
		return nil, false, fmt.Errorf("error getting node object with name %q: %w", name, err)
	}
	return addresses, found, nil
}

// validName reports whether an object can have a name. The name is a segment of the request's path, and is limited in
// length.
func validName(name string) bool {
	return name != "" && len(name) <= nameLimit && len(content.IsPathSegmentName(name)) == 0
}

// nameLimit is the maximum length of the name of a Node or Machine, which is a DNS subdomain.
const nameLimit = 253

// usages returns the reason to refuse the usages: one is missing, or no signer accepts it.
func usages(asked, allowed []certificatesv1.KeyUsage, required ...certificatesv1.KeyUsage) string {
	for _, usage := range asked {
		if !slices.Contains(allowed, usage) {
			return fmt.Sprintf("key usage %q is not allowed", usage)
		}
	}
	for _, usage := range required {
		if !slices.Contains(asked, usage) {
			return fmt.Sprintf("key usage %q is missing", usage)
		}
	}
	return ""
}
