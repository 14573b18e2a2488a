package relation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
)

// Link is a missing edge that the table of edges would make if an object had the fields for it.
type Link struct {
	graph.Edge
	// Row is the rule of the edge, Watch the kind of object that would have it.
	Row   *Row
	Watch *Watch
	// Owner is the object that would have to contribute the link; New is set if the graph does not have it.
	Owner graph.Vertex
	New   bool
}

// Candidate is a minimal set of links: with all of them the start leads to the sink.
type Candidate struct {
	Links []Link
	// Path is the path that the links would make, from the start to the sink.
	Path []graph.Vertex
}

// NewName stands for the name of an object that does not exist yet.
const NewName = "<new>"

const (
	// maxLinks is the length of the longest path that rows make: Secret, ControllerDeployment,
	// ControllerInstallation, Shoot, Seed.
	maxLinks = 4
	// shownCandidates is the number of sets that are shown, because a reader needs only the likely ones. shownPerRow
	// leaves room for other rules.
	shownCandidates = 5
	shownPerRow     = 2
	// nearStarts limits the vertices from which links are searched, and leading the vertices to which they lead:
	// their product is some milliseconds' work for each row. New links of a further level are searched from fewer
	// vertices.
	nearStarts  = 200
	leading     = 20_000
	startsAgain = 20
	foundAgain  = 2000
	// knownAtMost limits the objects that new links may lead to: one pass over the whole graph, and some megabytes.
	knownAtMost = 100_000
)

// Missing returns the smallest sets of links that would make a vertex lead to a sink, the likeliest first; with
// managed, the first edge must be of class Manages. It returns nothing if the vertex leads there already. Every set
// has as few links as possible, within the limits above.
func (t Table) Missing(g *graph.Graph, start, sink graph.Vertex, managed bool) []Candidate {
	s := search{table: t, graph: g, start: start, sink: sink, managed: managed, goals: map[graph.Kind][]graph.Vertex{}, seen: map[graph.Vertex]bool{}}
	isGoal := map[graph.Vertex]bool{}
	for _, v := range g.Leading(sink, leading) {
		s.goals[v.Kind] = append(s.goals[v.Kind], v)
		isGoal[v] = true
	}
	for i, step := range g.Onward([]graph.Vertex{start}, true, managed, nearStarts) {
		if isGoal[step.Vertex] && (i > 0 || !managed) {
			return nil
		}
		s.note(node{step.Vertex, step.From, nil})
	}
	for level := 1; level <= maxLinks; level++ {
		if found := s.last(); len(found) > 0 {
			return found
		}
		s.further(isGoal)
	}
	return nil
}

// search is a breadth-first search in which existing edges cost nothing and links cost one.
type search struct {
	table       Table
	graph       *graph.Graph
	start, sink graph.Vertex
	managed     bool
	// goals are the vertices that lead to the sink, by kind.
	goals map[graph.Kind][]graph.Vertex
	nodes []node
	seen  map[graph.Vertex]bool
	// known are vertices to which edges can lead, by kind; nil until they are needed.
	known map[graph.Kind][]graph.Vertex
	// from is the first node of the level.
	from int
}

// node is a vertex that can be reached from the start, over an edge or a link.
type node struct {
	vertex graph.Vertex
	before int // The index of the node before; negative for the start.
	link   *Link
}

func (s *search) note(n node) {
	s.nodes = append(s.nodes, n)
	s.seen[n.vertex] = true
}

// each calls do for all rows that may make an edge from a node.
func (s *search) each(n node, do func(*Watch, *Row)) {
	first := n.before < 0
	for _, w := range s.table {
		for i := range w.Rows {
			r := &w.Rows[i]
			if slices.Contains(r.From, n.vertex.Kind) && (first || r.Class != graph.Direct) && (!first || !s.managed || r.Class == graph.Manages) {
				do(w, r)
			}
		}
	}
}

// last searches a link from a node of the level to a vertex that leads to the sink.
func (s *search) last() []Candidate {
	var found []ranked
	for at := s.from; at < len(s.nodes) && at < s.from+nearStarts; at++ {
		n := s.nodes[at]
		s.each(n, func(w *Watch, r *Row) {
			count := 0
			for _, to := range r.To {
				for _, goal := range s.goals[to] {
					if count >= shownPerRow {
						return
					}
					link, possible := s.link(w, r, n.vertex, goal)
					if !possible {
						continue
					}
					count++
					found = append(found, s.candidate(at, link))
				}
			}
		})
	}
	return best(found)
}

// link returns the link between two vertices by a row. A row without fields always holds: its edge is missing only if
// the object is.
func (s *search) link(w *Watch, r *Row, from, to graph.Vertex) (Link, bool) {
	if !r.CanJoin(from, to) {
		return Link{}, false
	}
	l := Link{Edge: graph.Edge{From: from, To: to, Class: r.Class}, Row: r, Watch: w, Owner: ownerOf(w, from, to)}
	l.New = !s.graph.Check(l.Owner, l.Owner).Watched
	return l, l.New || !r.isAlways()
}

// ownerOf returns the object that has an edge: one of its ends, or the ManagedSeed with the name of a Seed (GE-28).
func ownerOf(w *Watch, from, to graph.Vertex) graph.Vertex {
	switch w.Kind {
	case from.Kind:
		return from
	case to.Kind:
		return to
	}
	return graph.Vertex{Kind: w.Kind, Namespace: wellknown.Garden, Name: to.Name}
}

// further adds the nodes to which one more link leads: existing objects, and new ones.
func (s *search) further(isGoal map[graph.Vertex]bool) {
	end := len(s.nodes)
	perKind := map[graph.Kind]int{}
	var added []node
	for at := s.from; at < end && len(added) < foundAgain; at++ {
		n := s.nodes[at]
		if perKind[n.vertex.Kind]++; perKind[n.vertex.Kind] > startsAgain {
			continue
		}
		s.each(n, func(w *Watch, r *Row) {
			for _, to := range s.ends(r, n.vertex) {
				if link, possible := s.link(w, r, n.vertex, to); possible && !isGoal[to] && !s.seen[to] {
					s.seen[to] = true
					added = append(added, node{to, at, &link})
				}
			}
		})
	}
	s.from = end
	starts := make([]graph.Vertex, len(added))
	for i, n := range added {
		starts[i] = n.vertex
	}
	base := len(s.nodes)
	for i, step := range s.graph.Onward(starts, false, false, len(starts)+foundAgain) {
		if i < len(added) {
			s.note(added[i])
			continue
		}
		s.note(node{step.Vertex, base + step.From, nil})
	}
}

// ends returns vertices to which a row can make an edge, and from which edges lead on.
func (s *search) ends(r *Row, from graph.Vertex) []graph.Vertex {
	kinds := slices.DeleteFunc(slices.Clone(r.To), func(k graph.Kind) bool { return k == s.sink.Kind })
	if len(kinds) == 0 {
		return nil
	}
	var there []graph.Vertex
	for _, kind := range kinds {
		for _, v := range s.knownOf(kind) {
			if len(there) < nearStarts && r.CanJoin(from, v) && !s.seen[v] {
				there = append(there, v)
			}
		}
	}
	for _, kind := range kinds {
		for _, v := range s.invented(kind, from) {
			if r.CanJoin(from, v) && !s.seen[v] {
				there = append(there, v)
				break
			}
		}
	}
	return there
}

// knownOf returns the vertices of a kind. The first call scans the whole graph, once for all kinds to which edges can
// lead.
func (s *search) knownOf(kind graph.Kind) []graph.Vertex {
	if s.known == nil {
		s.known = map[graph.Kind][]graph.Vertex{}
		ends := map[graph.Kind]bool{}
		for _, w := range s.table {
			for i := range w.Rows {
				for _, to := range w.Rows[i].To {
					ends[to] = to != s.sink.Kind
				}
			}
		}
		found := s.graph.Find(func(v graph.Vertex) bool { return ends[v.Kind] }, knownAtMost)
		slices.SortFunc(found, Schema.Compare)
		for _, v := range found {
			s.known[v.Kind] = append(s.known[v.Kind], v)
		}
	}
	return s.known[kind]
}

// invented returns the names that a new object of a kind could have to be joined with a vertex, the likeliest first:
// the sink's own name, if an object of that name always leads to the sink (GE-27: a ManagedSeed is the Seed of its
// name).
func (s *search) invented(kind graph.Kind, from graph.Vertex) []graph.Vertex {
	if like := (graph.Vertex{Kind: kind, Namespace: newNamespace(kind, from), Name: s.sink.Name}); s.always(like) {
		return append([]graph.Vertex{like}, invented(kind, from)...)
	}
	return invented(kind, from)
}

// always reports whether a vertex leads to the sink by a row that always holds, because of its name.
func (s *search) always(from graph.Vertex) bool {
	unlike := from
	unlike.Name = NewName
	for _, w := range s.table {
		for i := range w.Rows {
			r := &w.Rows[i]
			if r.isAlways() && slices.Contains(r.From, from.Kind) && slices.Contains(r.To, s.sink.Kind) && r.CanJoin(from, s.sink) && !r.CanJoin(unlike, s.sink) {
				return true
			}
		}
	}
	return false
}

// isAlways reports whether the edge of a row exists whenever the object exists.
func (r *Row) isAlways() bool { return len(r.Fields) == 0 && len(r.Needs) == 0 }

// newNamespace returns the namespace of a new object that is joined with a vertex. ManagedSeeds are in namespace
// garden only.
func newNamespace(kind graph.Kind, from graph.Vertex) string {
	switch {
	case ClusterScoped(kind):
		return ""
	case kind == ManagedSeed:
		return wellknown.Garden
	case from.Kind == Namespace:
		return from.Name
	}
	return cmp.Or(from.Namespace, wellknown.Garden)
}

func invented(kind graph.Kind, from graph.Vertex) []graph.Vertex {
	if ClusterScoped(kind) {
		return []graph.Vertex{{Kind: kind, Name: NewName}, {Kind: kind, Name: from.Name}}
	}
	result := make([]graph.Vertex, 0, 5)
	for _, suffixes := range [][]string{wellknown.ShootSecrets, wellknown.ShootInternalSecrets, wellknown.ShootConfigMaps} {
		if shoot, found := wellknown.CutShootSuffix(from.Name, suffixes); found {
			result = append(result, graph.Vertex{Kind: kind, Namespace: from.Namespace, Name: shoot})
		}
	}
	namespace := newNamespace(kind, from)
	name := NewName
	if kind == ServiceAccount { // Only those of bootstrapping gardenlets are watched.
		name = wellknown.BootstrapServiceAccount + NewName
	}
	return append(result, graph.Vertex{Kind: kind, Namespace: namespace, Name: name}, graph.Vertex{Kind: kind, Namespace: namespace, Name: from.Name})
}

// ranked is a candidate with the properties that order candidates.
type ranked struct {
	Candidate
	// added counts new objects, said links that need fields of objects, and before existing edges.
	added, said, before, quality int
	rule                         string
}

// candidate returns the links on the path to a node, and one more.
func (s *search) candidate(at int, last Link) ranked {
	c := ranked{rule: last.Row.ID}
	links, path := []Link{last}, []graph.Vertex{last.To}
	for ; at >= 0; at = s.nodes[at].before {
		n := s.nodes[at]
		path = append(path, n.vertex)
		if n.link != nil {
			links = append(links, *n.link)
		} else {
			c.before++
		}
	}
	slices.Reverse(links)
	slices.Reverse(path)
	c.Links, c.Path = links, path
	if last.To != s.sink {
		if rest := s.graph.Explain(last.To, s.sink).Path; len(rest) > 0 {
			c.Path = append(c.Path, rest[1:]...)
		}
	}
	for i, l := range links {
		if l.New && !slices.ContainsFunc(links[:i], func(other Link) bool { return other.Owner == l.Owner }) {
			c.added++
		}
		if !l.Row.isAlways() {
			c.said++
		}
		if l.Owner.Namespace != s.start.Namespace {
			c.quality++
		}
		if len(l.Row.Fields) > 0 && strings.HasPrefix(l.Row.Fields[0], "status.") {
			c.quality += 2 // A user does not set a status to get access.
		}
	}
	return c
}

// best orders candidates and returns the first ones, few of each rule: existing objects come before new ones, few
// links before many, then paths that continue from the farthest vertex that is reached, then links that objects of
// the start's namespace can contribute.
func best(all []ranked) []Candidate {
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.added, b.added), cmp.Compare(a.said, b.said), cmp.Compare(b.before, a.before), cmp.Compare(a.quality, b.quality))
	})
	var result []Candidate
	perRow := map[string]int{}
	for _, c := range all {
		if perRow[c.rule]++; perRow[c.rule] <= shownPerRow && len(result) < shownCandidates {
			result = append(result, c.Candidate)
		}
	}
	return result
}
