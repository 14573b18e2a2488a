package objects

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// TestPropertyOfClaimants: whatever is tracked, ignored, forgotten and seen in inventories, Claimants leaves out no owner of the objects, whatever
// namespace it knows them in if their kind is cluster-scoped.
func TestPropertyOfClaimants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		owners := []Owner{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		keyOf := rapid.Custom(func(t *rapid.T) ID {
			return NewID(schema.GroupKind{Kind: rapid.SampledFrom([]string{"K", "L", "Namespace"}).Draw(t, "kind")},
				rapid.SampledFrom([]string{"", "n", "m"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
		})
		has, ignored, seen := map[Owner][]ID{}, map[Owner][]ID{}, map[Owner][]ID{}
		draw := func(t *rapid.T) (Owner, []ID) {
			return rapid.SampledFrom(owners).Draw(t, "owner"), rapid.SliceOfN(keyOf, 0, 3).Draw(t, "objects")
		}
		t.Repeat(map[string]func(*rapid.T){
			"a ManagedResource is tracked": func(t *rapid.T) {
				owner, keys := draw(t)
				var refs []Ref
				for _, key := range keys {
					refs = append(refs, Ref{ID: key})
				}
				l.Track(owner, refs)
				seen[owner] = slices.DeleteFunc(slices.Concat(seen[owner], ignored[owner]), func(id ID) bool { return slices.Contains(keys, id) })
				if has[owner] = keys; len(keys) > 0 {
					delete(ignored, owner)
				}
			},
			"one is ignored": func(t *rapid.T) {
				owner, keys := draw(t)
				l.SeeInventory(owner, keys, true)
				l.Track(owner, nil)
				delete(has, owner)
				ignored[owner] = keys
			},
			"an inventory is seen": func(t *rapid.T) {
				owner, keys := draw(t)
				l.SeeInventory(owner, keys, false)
				delete(ignored, owner)
				seen[owner] = keys
			},
			"": func(t *rapid.T) {
				key := keyOf.Draw(t, "key")
				clusterScoped := rapid.Bool().Draw(t, "cluster-scoped")
				got := l.Claimants([]ID{key}, func(schema.GroupKind) bool { return clusterScoped })
				for _, owner := range owners {
					isIt := func(id ID) bool { return id.Same(key, clusterScoped) }
					want := slices.ContainsFunc(slices.Concat(has[owner], ignored[owner]), isIt)
					at := slices.IndexFunc(got, func(c Claimant) bool { return c.Owner == owner })
					switch {
					case want && (at < 0 || !got[at].Has):
						t.Fatalf("MRB-16: %s has %s, and is not among %v", owner, key.Name, got)
					case at >= 0 && got[at].Has && !want && !slices.ContainsFunc(seen[owner], isIt):
						t.Fatalf("MRB-16: %s does not have %s: %v", owner, key.Name, got)
					case at < 0 && len(ignored[owner]) == 0 && len(l.inventories[owner].ids) > 0:
						t.Fatalf("MRB-16: %s may have %s, and is not among %v", owner, key.Name, got)
					}
				}
			},
		})
	})
}

// Objects of a kind whose scope was changed are found by name.
func TestClaimantsOfAKindInTwoScopes(t *testing.T) {
	l, kind := New(), schema.GroupKind{Kind: "K"}
	namespaced, clusterScoped := func(schema.GroupKind) bool { return false }, func(schema.GroupKind) bool { return true }
	in := func(namespace string) []ID { return []ID{NewID(kind, namespace, "x")} }
	l.Track(Owner{Name: "old"}, []Ref{{ID: NewID(kind, "n", "x")}})
	if got := l.Claimants(in("m"), namespaced); len(got) != 0 {
		t.Errorf("MRD-13: another object in another namespace: %v", got)
	}
	for _, namespace := range []string{"", "m", "n"} {
		if got := l.Claimants(in(namespace), clusterScoped); !slices.Equal(got, []Claimant{{Owner{Name: "old"}, true}}) {
			t.Errorf("MRD-13: in namespace %q: %v", namespace, got)
		}
	}
	l.Track(Owner{Name: "new"}, []Ref{{ID: NewID(kind, "", "x")}})
	if got := l.Claimants(in("m"), clusterScoped); len(got) != 2 {
		t.Errorf("MRD-13: the kind has no namespaces: %v", got)
	}
	if got := l.Claimants(in(metav1.NamespaceDefault), namespaced); !slices.Equal(got, []Claimant{{Owner{Name: "new"}, true}}) {
		t.Errorf("MRD-12: an entry without a namespace is in the default one: %v", got)
	}
	l.Track(Owner{Name: "old"}, nil)
	l.Track(Owner{Name: "new"}, nil)
	if len(l.elsewhere) > 0 {
		t.Errorf("counts are left: %v", slices.Collect(maps.Values(l.elsewhere)))
	}
}

// An inventory with objects that are not on record makes its ManagedResource a claimant of everything until they are.
func TestUnrecordedInventories(t *testing.T) {
	l, owner, a, b := New(), Owner{Name: "o"}, ID{Name: "a"}, ID{Name: "b"}
	l.SeeInventory(owner, []ID{a, b}, false)
	if got := l.Claimants([]ID{{Name: "other"}}, func(schema.GroupKind) bool { return false }); len(got) != 1 {
		t.Errorf("MRB-16: %v", got)
	}
	l.Track(owner, []Ref{{ID: a}})
	if got := l.Claimants([]ID{{Name: "other"}}, func(schema.GroupKind) bool { return false }); len(got) != 1 {
		t.Errorf("MRB-16: b is still not on record: %v", got)
	}
	l.Track(owner, []Ref{{ID: a}, {ID: b}})
	if got := l.Claimants([]ID{{Name: "other"}}, func(schema.GroupKind) bool { return false }); len(got) != 0 {
		t.Errorf("MRB-16: all is on record: %v", got)
	}
	l.SeeInventory(owner, []ID{{Name: "c"}}, false)
	if l.SeeInventory(owner, nil, false); len(l.inventories) > 0 {
		t.Error("MRB-16: a ManagedResource that is gone is remembered")
	}
}

// An ignored ManagedResource has the objects of its inventory until it has some on record again.
func TestIgnoredInventories(t *testing.T) {
	l, ignored, a, b := New(), Owner{Name: "ignored"}, ID{Name: "a"}, ID{Name: "b"}
	has := func(id ID) []Claimant { return l.Claimants([]ID{id}, func(schema.GroupKind) bool { return false }) }
	l.Track(ignored, []Ref{{ID: a}})
	l.SeeInventory(ignored, []ID{a}, true)
	l.Track(ignored, nil)
	if got := has(a); !slices.Equal(got, []Claimant{{ignored, true}}) || len(has(b)) > 0 {
		t.Errorf("MR-3: an ignored ManagedResource keeps its objects: %v, %v", got, has(b))
	}
	l.Track(ignored, []Ref{{ID: b}})
	if len(has(a)) == 0 {
		t.Error("MR-3: its inventory still has the object")
	}
	if l.SeeInventory(ignored, []ID{b}, false); len(has(a)) > 0 {
		t.Error("MR-3: it does not have the object any more")
	}
}
