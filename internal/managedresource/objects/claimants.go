package objects

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Claimants returns the ManagedResources that have one of the objects on record, or have one while they are ignored,
// and those whose inventories are not wholly on record. If clusterScoped holds for the kind of an object, its
// namespace does not matter; the cost then depends on the objects of the kind if any of them is recorded with another
// namespace, as after a change of the scope.
func (l *Tracker) Claimants(ids []ID, clusterScoped func(schema.GroupKind) bool) []Owner {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[Owner]struct{}{}
	anywhere := map[ID]struct{}{}
	for _, id := range ids {
		if clusterScoped(id.GroupKind()) {
			anywhere[id.WithoutNamespace()] = struct{}{}
			id.Namespace = PlaceOf(id.Kind, "")
		}
		if r := l.findLocked(id); r != nil {
			r.claimants(found)
		}
	}
	has := func(id ID) bool {
		_, has := anywhere[id.WithoutNamespace()]
		return has
	}
	for k, number := range l.elsewhere {
		if number == 0 || !clusterScoped(k.Value()) {
			continue
		}
		for _, r := range l.records[k] {
			if has(r.key()) {
				r.claimants(found)
			}
		}
	}
	for owner, kept := range l.ignored {
		if slices.ContainsFunc(ids, func(id ID) bool { _, exactly := kept[id]; return exactly }) || len(anywhere) > 0 &&
			containsKey(kept, has) {
			found[owner] = struct{}{}
		}
	}
	for owner := range l.unrecorded {
		found[owner] = struct{}{}
	}
	return slices.Collect(maps.Keys(found))
}

func containsKey(set map[ID]struct{}, has func(ID) bool) bool {
	for id := range set {
		if has(id) {
			return true
		}
	}
	return false
}

func (r *record) claimants(into map[Owner]struct{}) {
	for _, o := range r.owners {
		into[o.owner] = struct{}{}
	}
}

// SeeInventory records the inventory of a ManagedResource as the source has it. An object in it may not be on record
// yet, because no run has begun or another process wrote the inventory: until it is, Claimants returns the
// ManagedResource for every request. An empty inventory forgets the ManagedResource.
func (l *Tracker) SeeInventory(owner Owner, keys []ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unrecorded[owner] = slices.DeleteFunc(keys, func(key ID) bool { return l.isRecordedLocked(owner, key) })
	if len(l.unrecorded[owner]) == 0 {
		delete(l.unrecorded, owner)
	}
}

// recordedLocked removes, from the unrecorded objects of a ManagedResource, those that are on record now.
func (l *Tracker) recordedLocked(owner Owner) {
	if missing, some := l.unrecorded[owner]; some {
		missing = slices.DeleteFunc(missing, func(key ID) bool { return l.isRecordedLocked(owner, key) })
		if l.unrecorded[owner] = missing; len(missing) == 0 {
			delete(l.unrecorded, owner)
		}
	}
}

// isRecordedLocked reports whether an object is on record for a ManagedResource, or among those that it has while it
// is ignored.
func (l *Tracker) isRecordedLocked(owner Owner, key ID) bool {
	if _, has := l.ignored[owner][key]; has {
		return true
	}
	o, r := l.owners[owner], l.findLocked(key)
	return o != nil && r != nil && slices.Contains(r.owners, o)
}
