// Package agent has the facts by which the requests of node agents are decided: a few fields of Machines, of Nodes
// and of the Secrets with configurations of operating systems.
package agent

import (
	"fmt"

	extensionsv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/extensions/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
)

const (
	// SecretLabel is the label of node templates of Machines, and of Nodes, that names the Secret with the
	// configuration of the operating system.
	SecretLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// PoolLabel is the label with the name of the worker pool, on Nodes and on the Secrets with configurations of
	// operating systems, which it marks.
	PoolLabel     = "worker.gardener.cloud/pool"
	hostnameLabel = "kubernetes.io/hostname"
)

// Machine has the names of a Machine's Node and configuration.
type Machine struct {
	// Node is the name of the Machine's Node, empty until it has one. It is also the name of the host: a kubelet
	// registers its Node under the name of its host. machine-controller-manager writes it as soon as the
	// infrastructure has the machine.
	Node string
	// Secret is the name of the Secret with the configuration of the Machine's operating system.
	Secret string
}

// MachineOf returns the facts about a Machine.
func MachineOf(m *machinev1alpha1.Machine) Machine {
	return Machine{Node: m.Labels[machinev1alpha1.NodeLabel], Secret: m.Spec.NodeTemplate.Metadata.Labels[SecretLabel]}
}

// Node identifies a Node whose agent has no Machine. The agent may patch its Node, so the labels of the first
// observation count until the Node is deleted. A label that was missing then never counts: the agent may have added
// it.
type Node struct {
	// UID distinguishes a Node from a later one of the same name.
	UID string
	// Hostname, Pool and FirstSecret are the labels as they were first observed, empty if they were missing.
	Hostname, Pool, FirstSecret string
	// Secret is the present value of SecretLabel. It changes with each new configuration of the pool.
	Secret string
}

// NodeOf returns the facts about a Node that is observed for the first time.
func NodeOf(n *kubernetes.Node) Node {
	secret := n.Labels[SecretLabel]
	return Node{UID: string(n.UID), Hostname: n.Labels[hostnameLabel], Pool: n.Labels[PoolLabel], FirstSecret: secret, Secret: secret}
}

// After returns the facts about a Node that was observed before. A Node that cannot be decoded has no UID, and counts
// as the earlier one.
func (n Node) After(before Node) Node {
	if n.UID != "" && n.UID != before.UID {
		return n
	}
	before.Secret = n.Secret
	return before
}

// Reference is a Secret that the configuration of an operating system refers to.
type Reference struct {
	Secret string
	// HostName limits the reference to one host; nil means all hosts. An empty name matches no host.
	HostName *string
}

// IsFor reports whether a reference is for a host. Without a known name, only references for all hosts are.
func (r Reference) IsFor(host string) bool {
	return r.HostName == nil || host != "" && *r.HostName == host
}

// ReferencesOf returns the references of a Secret with the configuration of an operating system (9.6). The error has
// none of the content.
func ReferencesOf(s *kubernetes.Secret) ([]Reference, error) {
	content, found := s.Data[extensionsv1alpha1.OperatingSystemConfigKey]
	if !found {
		return nil, nil
	}
	osc, err := extensionsv1alpha1.DecodeOperatingSystemConfig(content)
	if err != nil {
		return nil, fmt.Errorf("unable to decode OSC from secret %q: %w", s.Name, err)
	}
	var references []Reference
	for _, files := range [][]extensionsv1alpha1.File{osc.Spec.Files, osc.Status.ExtensionFiles} {
		for _, file := range files {
			if file.Content.SecretRef == nil || file.Content.SecretRef.Name == "" {
				continue
			}
			references = append(references, Reference{Secret: file.Content.SecretRef.Name, HostName: file.HostName})
		}
	}
	return references, nil
}
