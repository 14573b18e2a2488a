package csr

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// kubelet checks a request for a kubelet's serving certificate: the rules of section 4.2 in order and, before any
// lookup, cases that the rules leave open and that no kubelet requests (C12).
func (d *decision) kubelet(ctx context.Context) (string, error) {
	name, isNode := strings.CutPrefix(d.Username, nodePrefix)
	switch {
	case !isNode: // CSR-10
		return fmt.Sprintf("username %q is not prefixed with %q", d.Username, nodePrefix), nil
	case len(d.DNSNames)+len(d.IPAddresses) == 0: // CSR-11
		return "no DNS names or IP addresses in the SANs found", nil
	case d.Subject != d.Username: // CSR-12
		return "common name in CSR does not match username", nil
	case !slices.Equal(d.Organization, []string{nodesGroup}): // CSR-13
		return "organization in CSR does not match nodes group", nil
	case !slices.Contains(d.Groups, nodesGroup): // C12
		return fmt.Sprintf("user is not in group %q", nodesGroup), nil
	case d.Others > 0: // C12
		return "e-mail addresses or URIs in the SANs found", nil
	}
	if reason := usages(d.Usages, servingUsages, certificatesv1.UsageServerAuth, certificatesv1.UsageDigitalSignature); reason != "" {
		return reason, nil
	}
	return d.node(ctx, name)
}

// node compares the request with the Node of the requester (CSR-14 to CSR-20).
func (d *decision) node(ctx context.Context, name string) (string, error) {
	addresses, found, err := d.findNode(ctx, name)
	if err != nil {
		return "", err
	}
	if !found {
		return fmt.Sprintf("could not find node object with name %q", name), nil
	}
	if d.Machines {
		count, err := d.view.MachinesOf(ctx, name)
		if err != nil {
			return "", fmt.Errorf("failed to list machine objects: %w", err)
		}
		if count != 1 {
			return fmt.Sprintf("Expected exactly one machine in namespace %q for node %q but found %d", d.MachineNamespace, name, count), nil
		}
	}
	dnsNames, ips := sets.New[string](), sets.New[string]()
	for _, address := range addresses {
		switch address.Type {
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			dnsNames.Insert(address.Address)
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			ip, err := netip.ParseAddr(address.Address)
			if err != nil {
				return fmt.Sprintf("IP address %q in node.Status.Addresses is invalid: %v", address.Address, err), nil
			}
			ips.Insert(ip.Unmap().String())
		}
	}
	if !dnsNames.Equal(sets.New(d.DNSNames...)) {
		return "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object", nil
	}
	if !ips.Equal(sets.New(d.IPAddresses...)) {
		return "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object", nil
	}
	return "", nil
}

func fromSlice(ip []byte) (string, bool) {
	address, ok := netip.AddrFromSlice(ip)
	return address.Unmap().String(), ok
}
