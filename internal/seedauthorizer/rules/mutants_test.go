package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// TestMutantsDie: a table or a graph with one fault decides differently in some small world: a verb more or less, a subresource more or less, a special case, a
// namespace or an open read less, an edge less. In `make test` every so many of them.
func TestMutantsDie(t *testing.T) {
	gardens := (small{t}).gardens()
	byKind := map[string][]smallGarden{}
	for _, g := range gardens {
		for _, vertex := range g.chain {
			kind, _, _ := strings.Cut(vertex, ":")
			byKind[kind] = append(byKind[kind], g)
		}
	}
	e := &exhaustion{t: t}
	var bases []*smallWorld
	for _, base := range (small{t}).bases() {
		bases = append(bases, newSmallWorld(smallGarden{objects: base}))
	}
	died := 0
	for _, m := range sample(append(mutants(seeds), mutants(shoots)...), 61) {
		kind := relation.Schema.Names[m.rule.kind]
		if m.rule.free {
			kind = map[bool]string{true: "-", false: "--"}[m.rule.group == ""]
		}
		if !slices.ContainsFunc(bases, func(w *smallWorld) bool { return e.kills(w, m, kind, smallVertices()) }) &&
			!slices.ContainsFunc(byKind[kind], func(g smallGarden) bool { return e.kills(newSmallWorld(g), m, kind, g.chain) }) {
			t.Errorf("%s, %s: %s survives", m.rule.id, m.rule.resource, m.says)
		} else {
			died++
		}
	}
	for at, rows := range sample(rowsOfGraphs(), 11) {
		found := slices.ContainsFunc(gardens, func(g smallGarden) bool {
			w := newSmallWorld(smallGarden{})
			if !w.populateWithout(g.objects, rows) {
				return false
			}
			w.contract = newSmallWorld(g).contract
			return slices.ContainsFunc(g.chain, func(vertex string) bool { return e.ask(w, vertex, 4) != "" })
		})
		if !found {
			t.Errorf("%d: the graph without %s decides the same", at, rows)
		} else {
			died++
		}
	}
	t.Logf("%d mutants died of %d requests", died, e.requests.Load())
}

// mutant is a table with one fault in a rule.
type mutant struct {
	*table
	rule *rule
	says string
}

// kills reports whether a small world shows the fault.
func (e *exhaustion) kills(w *smallWorld, m mutant, kind string, vertices []string) bool {
	asks := map[bool]*Authorizer{true: w.world.seeds, false: w.world.shoots}[m.name == seeds.name]
	before := asks.table
	asks.table = m.table
	defer func() { asks.table = before }()
	return slices.ContainsFunc(vertices, func(vertex string) bool { return strings.HasPrefix(vertex, kind+":") && e.ask(w, vertex, 8) != "" })
}

// mutants are the faults that change what a table says. Rules whose special case decides every request have none in their verbs.
func mutants(t *table) (result []mutant) {
	for i, r := range t.rules {
		for _, ofExtension := range []bool{false, true} {
			fault := func(says string, change func(*rule)) {
				all := slices.Clone(t.rules)
				whole := *r
				at := &whole
				if ofExtension {
					extension := *r.extension
					whole.extension, at = &extension, &extension
				}
				change(at)
				all[i] = &whole
				mutated := newTable(t.name, t.identify, all)
				mutated.before, mutated.counts = t.before, t.counts
				result = append(result, mutant{mutated, at, says})
			}
			at := r
			if ofExtension {
				at = r.extension
			}
			if at == nil || slices.Contains([]string{"SR-16e", "SH-14e"}, at.id) {
				continue
			}
			for bit, verb := range verbNames {
				one := verbs(1) << bit
				// The only Lease with a path is the seed's own, which C1 lets it delete; the only ServiceAccounts with one are those of SH-18a.
				decided := at.id == "SR-16g" && one == verbDelete || at.id == "SH-18g"
				if !at.always.has(one) && !at.free && !decided {
					fault(verb+" by path", func(r *rule) { r.path ^= one })
				}
				if !at.path.has(one) {
					fault(verb+" always", func(r *rule) { r.always ^= one })
				}
			}
			for _, subresource := range at.subresources {
				fault("without "+subresource, func(r *rule) {
					r.subresources = slices.DeleteFunc(slices.Clone(r.subresources), func(s string) bool { return s == subresource })
				})
			}
			fault("with subresource foo", func(r *rule) { r.subresources = append(slices.Clone(r.subresources), "foo") })
			if at.seedReads {
				fault("without open reads", func(r *rule) { r.seedReads = false })
			}
			if at.referenced && t == seeds {
				fault("written by reference", func(r *rule) { r.referenced = false })
			}
			if at.namespace != nil {
				fault("in any namespace", func(r *rule) { r.namespace = nil })
			}
			for s := range at.exceptions {
				if id := at.exceptions[s].id; id != "SH-16a" { // TestSmallSelectors asks for this one.
					fault("without "+id, func(r *rule) { r.exceptions = slices.Delete(slices.Clone(r.exceptions), s, s+1) })
				}
			}
		}
	}
	return result
}

// rowsOfGraphs are the IDs of all edges by which something is decided here.
func rowsOfGraphs() (ids []string) {
	for _, table := range []relation.Table{relation.Watches, relation.SelfHosted} {
		for _, watch := range table {
			for _, row := range watch.Rows {
				ids = append(ids, row.ID)
			}
		}
	}
	slices.Sort(ids)
	// Every client may read each ControllerRegistration (SR-11), and none may do more: SeedRestriction alone asks for GE-14.
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "GE-14" })
}

// populateWithout is populate without an edge, and reports whether the edge would have been there.
func (w *smallWorld) populateWithout(objects []present, id string) (missing bool) {
	w.populate(nil)
	for _, o := range objects {
		for state, watch := range map[*relation.State]*relation.Watch{w.seedState: relation.Watches.Of(o.kind), w.shootState: relation.SelfHosted.Of(o.kind)} {
			if watch == nil {
				continue
			}
			less := watch.Without(id)
			state.Set(less, o.object)
			_, all, _ := watch.Contribute(o.object, state.Facts())
			_, rest, _ := less.Contribute(o.object, state.Facts())
			missing = missing || len(all) != len(rest)
		}
	}
	return missing
}
