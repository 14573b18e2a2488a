package relation

import (
	"slices"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/graph"
)

const (
	coreAPI     = "v1"
	securityAPI = "security.gardener.cloud/v1alpha1"
	gardenAPI   = "core.gardener.cloud/v1beta1"
)

// credentials are the kinds that a credentials reference may name.
var credentials = []graph.Kind{Secret, WorkloadIdentity}

// resources are the kinds that spec.resources may name.
var resources = []graph.Kind{Secret, ConfigMap, WorkloadIdentity}

// kindOf returns the kind of vertex that a reference names; other kinds have no edge (B-8).
func kindOf(reference *partialmeta.Reference, allowed []graph.Kind) (graph.Kind, bool) {
	var kind graph.Kind
	switch reference.APIVersion + " " + reference.Kind {
	case coreAPI + " Secret":
		kind = Secret
	case coreAPI + " ConfigMap":
		kind = ConfigMap
	case securityAPI + " WorkloadIdentity":
		kind = WorkloadIdentity
	case gardenAPI + " InternalSecret":
		kind = InternalSecret
	default:
		return 0, false
	}
	if !slices.Contains(allowed, kind) {
		return 0, false
	}
	return kind, true
}

// credentials adds the edge of a credentials reference, or of the older Secret reference where the newer one is not set.
func (c *collector) credentials(reference *partialmeta.Reference, before *partialmeta.SecretReference) {
	if reference == nil {
		if before != nil {
			c.from(Secret, before.Namespace, before.Name)
		}
		return
	}
	if kind, ok := kindOf(reference, credentials); ok {
		c.from(kind, reference.Namespace, reference.Name)
	}
}

// credentialsIn is credentials for references to one namespace only.
func (c *collector) credentialsIn(namespace string, reference *partialmeta.Reference, before *partialmeta.SecretReference) {
	if reference == nil && before != nil && before.Namespace == namespace || reference != nil && reference.Namespace == namespace {
		c.credentials(reference, before)
	}
}

// BackupCredentials returns the credentials that the backup of a Seed or of a self-hosted Shoot names.
func BackupCredentials(backup *gardencorev1beta1.SeedBackup) []graph.Vertex {
	c := collector{self: graph.Vertex{Kind: BackupBucket, Name: "-"}}
	c.backup(backup)
	var result []graph.Vertex
	for _, e := range c.edges {
		result = append(result, e.From)
	}
	return result
}

// ControlPlaneBackups returns the backup credentials that a self-hosted Shoot names. They have no edge: the Shoot's BackupBucket names them.
func ControlPlaneBackups(shoot *gardencorev1beta1.Shoot) (result []graph.Vertex) {
	for i := range shoot.Spec.Provider.Workers {
		if controlPlane := shoot.Spec.Provider.Workers[i].ControlPlane; controlPlane != nil {
			result = append(result, BackupCredentials(controlPlane.Backup)...)
		}
	}
	return result
}

// resources adds the edges of spec.resources to a vertex.
func (c *collector) resources(list []partialmeta.NamedResource, namespace string, to graph.Vertex, allowed []graph.Kind) {
	for i := range list {
		if kind, ok := kindOf(&list[i].ResourceRef, allowed); ok {
			c.edge(graph.Vertex{Kind: kind, Namespace: namespace, Name: list[i].ResourceRef.Name}, to)
		}
	}
}

func deref(text *string) string { return ptr.Deref(text, "") }

func nameOf(reference *partialmeta.NameReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}
