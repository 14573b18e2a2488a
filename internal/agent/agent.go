// Package agent says what decides about the agents of nodes: of Machines, Nodes and the Secrets with configurations of operating
// systems, only that.
package agent

import (
	"fmt"

	extensionsv1alpha1 "github.com/espalier-project/espalier/internal/foreign/extensions/v1alpha1"
	"github.com/espalier-project/espalier/internal/foreign/kubernetes"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/foreign/machine/v1alpha1"
)

const (
	// SecretLabel names, on Machines and Nodes, the Secret with the configuration of the operating system.
	SecretLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"
	// PoolLabel marks the Secrets with configurations of operating systems.
	PoolLabel     = "worker.gardener.cloud/pool"
	hostnameLabel = "kubernetes.io/hostname"
)

// Machine is what is known of a Machine.
type Machine struct {
	// Node is the name of the Node that the Machine has become, empty before.
	Node string
	// Secret is the name of the Secret with the configuration of the Machine's operating system.
	Secret string
}

// MachineOf returns what is known of a Machine.
func MachineOf(m *machinev1alpha1.Machine) Machine {
	return Machine{Node: m.Labels[machinev1alpha1.NodeLabel], Secret: m.Spec.NodeTemplate.Metadata.Labels[SecretLabel]}
}

// Node is what is known of a Node.
type Node struct {
	Hostname, Secret string
}

// NodeOf returns what is known of a Node.
func NodeOf(n *kubernetes.Node) Node {
	return Node{Hostname: n.Labels[hostnameLabel], Secret: n.Labels[SecretLabel]}
}

// Reference is a Secret that the configuration of an operating system refers to.
type Reference struct {
	Secret string
	// HostName limits the reference to one host; empty means all.
	HostName string
}

// ReferencesOf returns what a Secret with the configuration of an operating system refers to (9.6). The error repeats nothing of the
// content.
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
			r := Reference{Secret: file.Content.SecretRef.Name}
			if file.HostName != nil {
				r.HostName = *file.HostName
			}
			references = append(references, r)
		}
	}
	return references, nil
}
