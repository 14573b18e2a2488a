package relation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
	"github.com/espalier-project/espalier/internal/graph"
)

// Facts has the facts about other objects that rows may use.
type Facts interface {
	// Seed reports whether a Seed exists and when its gardenlet's certificate expires; zero means unknown.
	Seed(name string) (exists bool, expires time.Time)
	// ProjectOf returns the project in the label of a namespace.
	ProjectOf(namespace string) string
	Now() time.Time
}

// Row is an edge of the graph, as the reference page shows it.
type Row struct {
	// ID of the rule.
	ID       string
	From, To []graph.Kind
	// Fields are the fields that are followed, as paths in the watched object; empty for edges that follow from the
	// object's name.
	Fields []string
	// When is the condition of the edge, or the names that it joins; empty if Fields is sufficient.
	When string
	// Needs are the other kinds of objects that the row reads.
	Needs []graph.Kind
	Class graph.Class
	// Joins reports whether an edge can join two vertices of the kinds; nil means any.
	Joins func(from, to graph.Vertex) bool
}

// Watch is a kind of objects that is watched.
type Watch struct {
	Kind     graph.Kind
	Resource schema.GroupVersionResource
	// New returns an object to decode into, whose fields have the numbers of Message in Protocol Buffers; that is nil for Kubernetes' own kinds.
	New     func() runtime.Object
	Message protodecode.Message
	Rows    []Row
	// NotFollowed are fields that are decoded for other reasons than edges, with the reason.
	NotFollowed map[string]string
	// Update is the name of additions and changes in metrics.
	Update string

	owner      func(object runtime.Object) graph.Vertex
	contribute func(object runtime.Object, facts Facts, skip func(Row) bool) (owner graph.Vertex, edges []graph.Edge, keep bool)
	// options and typed are the arguments of the watch, for watches that are derived from it.
	options, typed any
}

// Contribute returns the edges that an object contributes, with the object's own vertex; keep reports whether the
// vertex exists without any edge.
func (w *Watch) Contribute(object runtime.Object, facts Facts) (owner graph.Vertex, edges []graph.Edge, keep bool) {
	return w.contribute(object, facts, nil)
}

// ByFields returns the edges that follow from an object's fields, which its writer chooses: those to the object and those from it.
func (w *Watch) ByFields(object runtime.Object) []graph.Edge {
	_, edges, _ := w.contribute(object, nil, func(r Row) bool { return len(r.Fields) == 0 })
	return edges
}

// Has reports whether the watch has a row.
func (w *Watch) Has(id string) bool {
	return slices.ContainsFunc(w.Rows, func(r Row) bool { return r.ID == id })
}

// Without returns the watch without some of its rows.
func (w *Watch) Without(ids ...string) *Watch {
	less := *w
	less.contribute = func(object runtime.Object, facts Facts, skip func(Row) bool) (graph.Vertex, []graph.Edge, bool) {
		return w.contribute(object, facts, func(r Row) bool { return slices.Contains(ids, r.ID) || skip != nil && skip(r) })
	}
	return &less
}

// Owner returns an object's own vertex.
func (w *Watch) Owner(object runtime.Object) graph.Vertex { return w.owner(object) }

// row is a Row with its function.
type row[T any] struct {
	Row
	edges func(object *T, add *collector)
}

// collector gathers the edges of one object.
type collector struct {
	// self is the vertex of the object.
	self  graph.Vertex
	class graph.Class
	edges []graph.Edge
	facts Facts
}

// edge adds an edge between two vertices.
func (c *collector) edge(from, to graph.Vertex) {
	if from.Name != "" && to.Name != "" {
		c.edges = append(c.edges, graph.Edge{From: from, To: to, Class: c.class})
	}
}

// from adds an edge to the object.
func (c *collector) from(kind graph.Kind, namespace, name string) {
	c.edge(graph.Vertex{Kind: kind, Namespace: namespace, Name: name}, c.self)
}

// to adds an edge from the object.
func (c *collector) to(kind graph.Kind, namespace, name string) {
	c.edge(c.self, graph.Vertex{Kind: kind, Namespace: namespace, Name: name})
}

// toReference adds an edge from the object to the object that it refers to.
func (c *collector) toReference(kind graph.Kind, reference *partialmeta.Reference) {
	if reference != nil {
		c.to(kind, reference.Namespace, reference.Name)
	}
}

// watchOptions has the differences between kinds in addition to their rows.
type watchOptions[T any] struct {
	kind        graph.Kind
	resource    schema.GroupVersionResource
	message     protodecode.Message
	identify    func(*T) (namespace, name string)
	update      string
	notFollowed map[string]string
	// onlyWithEdges is set if an object without edges has no vertex.
	onlyWithEdges bool
	// only, if set, selects the objects that the graph has; the others have neither a vertex nor edges.
	only func(*T) bool
}

func watch[T any, P interface {
	*T
	runtime.Object
}](o watchOptions[T], rows []row[T]) *Watch {
	w := &Watch{
		Kind: o.kind, Resource: o.resource, New: func() runtime.Object { return P(new(T)) }, Message: o.message, NotFollowed: o.notFollowed, Update: o.update,
		options: o, typed: rows,
	}
	if w.Update == "" {
		w.Update = "CreateOrUpdate"
	}
	for _, r := range rows {
		w.Rows = append(w.Rows, r.Row)
	}
	w.owner = func(object runtime.Object) graph.Vertex {
		typed, ok := object.(P)
		if !ok {
			return graph.Vertex{}
		}
		namespace, name := o.identify(typed)
		return graph.Vertex{Kind: o.kind, Namespace: namespace, Name: name}
	}
	w.contribute = func(object runtime.Object, facts Facts, skip func(Row) bool) (graph.Vertex, []graph.Edge, bool) {
		typed, ok := object.(P)
		if !ok {
			return graph.Vertex{}, nil, false
		}
		if o.only != nil && !o.only(typed) {
			return w.owner(object), nil, false
		}
		c := &collector{self: w.owner(object), edges: make([]graph.Edge, 0, len(rows)), facts: facts}
		for i := range rows {
			if skip != nil && skip(rows[i].Row) {
				continue
			}
			c.class = rows[i].Class
			rows[i].edges(typed, c)
		}
		return c.self, c.edges, !o.onlyWithEdges || len(c.edges) > 0
	}
	return w
}

// Table has all kinds from which a graph is made, with all edges.
type Table []*Watch

// Of returns the watch of a kind, nil if objects of the kind are only referred to.
func (t Table) Of(kind graph.Kind) *Watch {
	for _, w := range t {
		if w.Kind == kind {
			return w
		}
	}
	return nil
}

// without returns the table without some of its rows.
func (t Table) without(ids []string) Table {
	if len(ids) == 0 {
		return t
	}
	less := slices.Clone(t)
	for i, w := range less {
		less[i] = w.Without(ids...)
	}
	return less
}

// Watches is the table of the graph for seeds.
var Watches = Table{
	backupBuckets, backupEntries, bastions, certificateSigningRequests, controllerDeployments, controllerInstallations,
	credentialsBindings, gardenlets, managedSeeds, projects, secretBindings, seeds, serviceAccounts, shoots,
}

// WatchOf returns the watch of a kind in the graph for seeds.
func WatchOf(kind graph.Kind) *Watch { return Watches.Of(kind) }
