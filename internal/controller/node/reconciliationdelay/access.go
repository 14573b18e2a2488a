package reconciliationdelay

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reads are metadata. Only the fields that delays depend on are kept.
func Reads() []feature.Read {
	strip := feature.Stripping(node.StripDelay)
	return []feature.Read{
		{Cluster: feature.Target, Kind: nodeKind, Resource: "nodes", ClusterScoped: true, Form: feature.Metadata, Strip: strip},
		{Cluster: feature.Target, Kind: nodeKind, Resource: "nodes", ClusterScoped: true, Form: feature.Live},
		{Cluster: feature.Target, Kind: secretKind, Resource: "secrets", Form: feature.Metadata, Namespace: metav1.NamespaceSystem, Selector: node.LabelRole + "=" + node.RoleConfiguration, Strip: strip},
	}
}

// Writes are the annotations of Nodes.
func Writes() []feature.Write {
	return []feature.Write{{Cluster: feature.Target, Resource: "nodes", Verbs: []string{"patch"}}}
}
