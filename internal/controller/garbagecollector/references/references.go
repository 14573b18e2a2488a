// Package references decides which ConfigMaps and Secrets are in use. Objects, holders and their references are a
// graph (internal/graph): an object is in use if a path leads from it to the vertex of use.
//
// Package api/resources/v1alpha1/references reads the references of an object.
package references

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/internal/graph"
)

// Kinds of vertices: a ConfigMap or Secret leads to the holders that refer to it, and a holder to the use.
const (
	configMap graph.Kind = iota
	secret
	holder
	use
)

var schema = graph.Schema{Names: []string{"ConfigMap", "Secret", "Holder", "Use"}, Ranks: []int{0, 0, 1, 2}, Sink: use}

var inUse = graph.Vertex{Kind: use}

// Graph has the references of the recorded holders. Its result for a namespace is correct once all holders of the
// namespace are recorded.
type Graph struct {
	g *graph.Graph
	// whole are the namespaces in which every object is in use.
	whole map[string]bool
}

// NewGraph returns a graph without holders.
func NewGraph() *Graph { return &Graph{g: graph.New(schema), whole: map[string]bool{}} }

// Hold records the references of an object, in its own namespace only (GC-8), and replaces its earlier ones.
func (g *Graph) Hold(kind, namespace, name string, refers []references.Reference) {
	by := graph.Vertex{Kind: holder, Namespace: namespace, Name: kind + "/" + name}
	if len(refers) == 0 {
		g.g.Remove(by)
		return
	}
	edges := []graph.Edge{{From: by, To: inUse}}
	for _, to := range refers {
		edges = append(edges, graph.Edge{From: vertex(to.Kind, namespace, to.Name), To: by})
	}
	g.g.Set(by, edges)
}

// HoldNamespace records that the references of a holder in a namespace are unknown: every object there is in use
// (T3-8).
func (g *Graph) HoldNamespace(namespace string) { g.whole[namespace] = true }

// InUse reports whether anything refers to a ConfigMap or Secret.
func (g *Graph) InUse(kind references.Kind, namespace, name string) bool {
	return g.whole[namespace] || g.g.Check(vertex(kind, namespace, name), inUse).Reached
}

func vertex(kind references.Kind, namespace, name string) graph.Vertex {
	v := graph.Vertex{Kind: configMap, Namespace: namespace, Name: name}
	if kind == references.Secret {
		v.Kind = secret
	}
	return v
}

// Old reports whether an object is at least minimumAge old, so that its creator must have referred to it by now
// (GC-5), and is not being deleted.
func Old(object *metav1.ObjectMeta, minimumAge time.Duration, now time.Time) bool {
	return object.DeletionTimestamp == nil && !object.CreationTimestamp.Add(minimumAge).After(now)
}
