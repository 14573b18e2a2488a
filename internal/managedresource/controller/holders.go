package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// holders are the other ManagedResources that have objects in their inventories.
type holders struct {
	// any has those by key and name, with the objects of their own entries; kept has those that are to stay.
	any  map[plan.Key]map[objects.Owner][]objects.Key
	kept map[plan.Key][]keeper
	// clusterScoped are kinds that have no namespaces though some of these entries name one; their objects are found by keys without namespaces.
	clusterScoped map[metav1.GroupKind]bool
	// unknown says of keys without namespaces why it is not known whether somebody has such an object.
	unknown map[plan.Key]error
}

// keeper is a ManagedResource that has an object and is to keep it; one that is to create it only once does not put it right, and one that is ignored
// not at present.
type keeper struct {
	objects.Owner
	// entry is the key of its own entry, and object the object that the entry is about.
	entry         plan.Key
	object        objects.Key
	once, ignored bool
}

// holding is an entry of another inventory.
type holding struct {
	keeper
	keeps bool
}

// holdersOf looks for objects in the inventories of all other ManagedResources that this instance has to do with.
func (r *Reconciler) holdersOf(ctx context.Context, except objects.Owner, refs []resourcesv1alpha1.ObjectReference) (holders, error) {
	if len(refs) == 0 {
		return holders{}, nil
	}
	wanted := make(map[plan.Key]struct{}, len(refs))
	wantedAt := map[plan.Key]*resourcesv1alpha1.ObjectReference{} // by key without namespace
	for i := range refs {
		key := plan.KeyOfReference(&refs[i].ObjectReference)
		wanted[key] = struct{}{}
		wantedAt[key.WithoutNamespace()] = &refs[i]
	}
	var found []holding
	err := r.Statuses.Others(ctx, except, func(other *resourcesv1alpha1.ManagedResource) {
		if !r.Class.Concerns(other) {
			return // Its objects may be in another cluster.
		}
		for i := range other.Status.Resources {
			key := plan.KeyOfReference(&other.Status.Resources[i].ObjectReference)
			if wantedAt[key.WithoutNamespace()] == nil {
				continue
			}
			object := target.RefOf(&other.Status.Resources[i]).Key
			found = append(found, holding{
				keeper{ownerOf(other), key, object, createdOnce(&other.Status.Resources[i]), meta.Ignored(other)}, r.keepsObject(other, object),
			})
		}
	})
	if err != nil {
		return holders{}, fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
	}
	h := holders{
		any: map[plan.Key]map[objects.Owner][]objects.Key{}, kept: map[plan.Key][]keeper{},
		clusterScoped: map[metav1.GroupKind]bool{}, unknown: map[plan.Key]error{},
	}
	failed := map[metav1.GroupKind]error{}
	for _, holding := range found {
		if _, exactly := wanted[holding.entry]; exactly {
			continue
		}
		kind, name := holding.entry.GroupKind(), holding.entry.WithoutNamespace()
		if _, asked := h.clusterScoped[kind]; !asked {
			h.clusterScoped[kind], failed[kind] = r.clusterScoped(ctx, wantedAt[name])
		}
		if failed[kind] != nil {
			h.unknown[name] = failed[kind]
		}
	}
	for _, holding := range found {
		if _, exactly := wanted[holding.entry]; exactly || h.clusterScoped[holding.entry.GroupKind()] {
			h.put(holding)
		}
	}
	return h, nil
}

// clusterScoped says whether the kind of an entry has no namespaces by now. One that is not served has no objects, wherever.
func (r *Reconciler) clusterScoped(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (bool, error) {
	_, scope, err := r.kindOf(ctx, ref)
	if target.Gone(err) {
		return false, nil
	}
	return scope == plan.ScopeCluster, err
}

func (h holders) put(holding holding) {
	key := h.keyed(holding.entry)
	if h.any[key] == nil {
		h.any[key] = map[objects.Owner][]objects.Key{}
	}
	h.any[key][holding.Owner] = append(h.any[key][holding.Owner], holding.object)
	if holding.keeps {
		h.kept[key] = append(h.kept[key], holding.keeper)
	}
}

// keyed is the key by which an object is found.
func (h holders) keyed(key plan.Key) plan.Key {
	if h.clusterScoped[key.GroupKind()] {
		return key.WithoutNamespace()
	}
	return key
}

// keeps says whether this instance keeps the objects of a ManagedResource. What one has that another class has still to clean up may be in another cluster.
func (r *Reconciler) keeps(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.DeletionTimestamp == nil && r.Class.Responsible(mr) && !r.Class.WaitsForHandOver(mr)
}

// keepsObject says whether a ManagedResource that has an object in its inventory is going to have it still.
func (r *Reconciler) keepsObject(mr *resourcesv1alpha1.ManagedResource, object objects.Key) bool {
	return r.keeps(mr) && r.Ledger.Keeps(ownerOf(mr), mr.UID, mr.Generation, object)
}

// has says whether a ManagedResource has an object in its inventory.
func (h holders) has(key plan.Key, owner objects.Owner) bool {
	return len(h.any[h.keyed(key)][owner]) > 0
}

// leaves says whether a ManagedResource is about to let go of all entries that it has for an object.
func (h holders) leaves(l *objects.Ledger, key plan.Key, owner objects.Owner) bool {
	return !slices.ContainsFunc(h.any[h.keyed(key)][owner], func(object objects.Key) bool { return !l.Leaves(owner, object) })
}

// keepers are those that keep an object.
func (h holders) keepers(key plan.Key) []keeper { return h.kept[h.keyed(key)] }

// looksAfter says whether a ManagedResource has an object, is to keep it, and puts it right.
func (h holders) looksAfter(key plan.Key, owner objects.Owner) bool {
	return slices.ContainsFunc(h.keepers(key), func(k keeper) bool { return k.Owner == owner && !k.once })
}

// heir is one of those that keep an object, the same for everybody who asks: one that puts it right, if there is one, and does so now.
func (h holders) heir(key plan.Key) (heir keeper, found bool) {
	all := h.keepers(key)
	if len(all) == 0 {
		return keeper{}, false
	}
	return slices.MinFunc(all, func(a, b keeper) int {
		return cmp.Or(falseFirst(a.once, b.once), falseFirst(a.ignored, b.ignored), strings.Compare(a.String(), b.String()))
	}), true
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
