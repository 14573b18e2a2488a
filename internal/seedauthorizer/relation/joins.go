package relation

import (
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
)

// These functions report which names the edges of a row can join. A property test checks that no object contributes
// an edge that its row does not join.

func sameNamespace(from, to graph.Vertex) bool { return from.Namespace == to.Namespace }

func sameName(from, to graph.Vertex) bool { return from.Name == to.Name }

func itself(from, to graph.Vertex) bool { return sameNamespace(from, to) && sameName(from, to) }

func inGarden(from, _ graph.Vertex) bool { return from.Namespace == wellknown.Garden }

func ofSeedGardenlet(from, to graph.Vertex) bool {
	return sameName(from, to) && !strings.HasPrefix(from.Name, wellknown.SelfHostedShootPrefix)
}

func ofShootGardenlet(from, to graph.Vertex) bool {
	return sameNamespace(from, to) && from.Name == wellknown.SelfHostedShootPrefix+to.Name
}

func ofShootExtension(from, to graph.Vertex) bool {
	return sameNamespace(from, to) && strings.HasPrefix(from.Name, wellknown.ExtensionOfShootPrefix+to.Name+"--")
}

func bootstrapToken(from, to graph.Vertex) bool {
	return from.Namespace == wellknown.KubeSystem && from.Name == wellknown.BootstrapTokenSecret(to.Namespace, to.Name)
}

func bootstrapAccount(from, to graph.Vertex) bool {
	return sameNamespace(from, to) && from.Name == wellknown.BootstrapServiceAccount+to.Name
}

func bootstrapBinding(from, to graph.Vertex) bool {
	return from.Name == wellknown.Bootstrapper(to.Namespace, to.Name)
}

func bootstrapSecret(from, to graph.Vertex) bool {
	return sameNamespace(from, to) && strings.HasPrefix(to.Name, wellknown.BootstrapServiceAccount)
}

func seedNamespace(from, to graph.Vertex) bool { return from.Name == wellknown.SeedNamespace(to.Name) }

func seedLease(from, to graph.Vertex) bool {
	return from.Namespace == wellknown.SeedLease && sameName(from, to)
}

func clusterIdentity(from, _ graph.Vertex) bool {
	return from.Namespace == wellknown.KubeSystem && from.Name == wellknown.ClusterIdentity
}

func namespaceOf(from, to graph.Vertex) bool { return from.Name == to.Namespace }

func profile(from, to graph.Vertex) bool {
	return from.Kind == CloudProfile || sameNamespace(from, to)
}

// issuerSecret checks only the namespace, because the Secret's name has the project and the UID of the Shoot, not its
// name.
func issuerSecret(from, _ graph.Vertex) bool { return from.Namespace == wellknown.ShootIssuer }

func generatedBucket(from, to graph.Vertex) bool {
	return from.Namespace == wellknown.Garden && from.Name == wellknown.GeneratedBucketPrefix+to.Name
}

func byShootName(suffixes []string) func(from, to graph.Vertex) bool {
	return func(from, to graph.Vertex) bool {
		suffix, found := strings.CutPrefix(from.Name, to.Name)
		return found && sameNamespace(from, to) && slices.Contains(suffixes, suffix)
	}
}

// CanJoin reports whether an edge of the row can join two vertices.
func (r *Row) CanJoin(from, to graph.Vertex) bool {
	if from == to || !slices.Contains(r.From, from.Kind) || !slices.Contains(r.To, to.Kind) {
		return false
	}
	return r.Joins == nil || r.Joins(from, to)
}
