package objects

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// TestLawOfClaimants: whatever is tracked, ignored, forgotten and seen in inventories, nobody is left out who has one of the objects that are asked for, in
// whatever namespace if objects of the kind are on record both with and without one.
func TestLawOfClaimants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		owners := []Owner{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		keyOf := rapid.Custom(func(t *rapid.T) Key {
			return Key{schema.GroupKind{Kind: rapid.SampledFrom([]string{"K", "L"}).Draw(t, "kind")}, rapid.SampledFrom([]string{"", "n", "m"}).Draw(t, "namespace"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")}
		})
		has, ignored := map[Owner][]Key{}, map[Owner][]Key{}
		draw := func(t *rapid.T) (Owner, []Key) {
			return rapid.SampledFrom(owners).Draw(t, "owner"), rapid.SliceOfN(keyOf, 0, 3).Draw(t, "objects")
		}
		t.Repeat(map[string]func(*rapid.T){
			"a ManagedResource is tracked": func(t *rapid.T) {
				owner, keys := draw(t)
				var refs []Ref
				for _, key := range keys {
					refs = append(refs, Ref{Key: key})
				}
				l.Track(owner, refs)
				if has[owner] = keys; len(keys) > 0 {
					delete(ignored, owner)
				}
			},
			"one is ignored": func(t *rapid.T) {
				owner, keys := draw(t)
				l.Track(owner, nil)
				l.SetIgnored(owner, slices.Clone(keys))
				delete(has, owner)
				ignored[owner] = keys
			},
			"an inventory is seen": func(t *rapid.T) {
				owner, keys := draw(t)
				l.SeeInventory(owner, keys)
			},
			"": func(t *rapid.T) {
				key := keyOf.Draw(t, "key")
				got := l.Claimants([]Key{key})
				for _, owner := range owners {
					all := slices.Concat(has[owner], ignored[owner])
					if !slices.Contains(got, owner) && (slices.Contains(all, key) || len(l.unrecorded[owner]) > 0) {
						t.Fatalf("MRB-16: %s has %s, and is not among %v", owner, key.Name, got)
					}
				}
			},
		})
	})
}

// Objects of a kind whose scope was changed are found by name.
func TestClaimantsOfAKindInTwoScopes(t *testing.T) {
	l, kind := New(), schema.GroupKind{Kind: "K"}
	l.Track(Owner{Name: "old"}, []Ref{{Key: Key{kind, "n", "x"}}})
	if got := l.Claimants([]Key{{kind, "m", "x"}}); len(got) != 0 {
		t.Errorf("MRD-13: another object in another namespace: %v", got)
	}
	for _, namespace := range []string{"", "n"} {
		if got := l.Claimants([]Key{{kind, namespace, "x"}}); !slices.Equal(got, []Owner{{Name: "old"}}) {
			t.Errorf("MRD-13: in namespace %q: %v", namespace, got)
		}
	}
	l.Track(Owner{Name: "new"}, []Ref{{Key: Key{kind, "", "x"}}})
	if got := l.Claimants([]Key{{kind, "m", "x"}}); len(got) != 2 {
		t.Errorf("MRD-13: the kind may have no namespaces by now: %v", got)
	}
	l.Track(Owner{Name: "old"}, nil)
	l.Track(Owner{Name: "new"}, nil)
	if len(l.namespaced) > 0 {
		t.Errorf("counts are left: %v", slices.Collect(maps.Values(l.namespaced)))
	}
}

// An inventory with objects that are not on record makes its ManagedResource a claimant of everything until they are.
func TestUnrecordedInventories(t *testing.T) {
	l, owner, a, b := New(), Owner{Name: "o"}, Key{Name: "a"}, Key{Name: "b"}
	l.SeeInventory(owner, []Key{a, b})
	if got := l.Claimants([]Key{{Name: "other"}}); len(got) != 1 {
		t.Errorf("MRB-16: %v", got)
	}
	l.Track(owner, []Ref{{Key: a}})
	if got := l.Claimants([]Key{{Name: "other"}}); len(got) != 1 {
		t.Errorf("MRB-16: b is still not on record: %v", got)
	}
	l.Track(owner, []Ref{{Key: a}, {Key: b}})
	if got := l.Claimants([]Key{{Name: "other"}}); len(got) != 0 {
		t.Errorf("MRB-16: all is on record: %v", got)
	}
	l.SeeInventory(owner, []Key{{Name: "c"}})
	if l.SeeInventory(owner, nil); len(l.unrecorded) > 0 {
		t.Error("MRB-16: a ManagedResource that is gone is remembered")
	}
}
