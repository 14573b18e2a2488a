package objects

import (
	"maps"
	"slices"
	"unique"
)

// Claimants returns the ManagedResources that have one of the objects on record, or have one while they are ignored,
// and those whose inventories are not wholly on record. If objects of a kind are on record both with and without a
// namespace, as after a change of its scope, kind and name decide; only then the cost depends on the objects of the
// kind.
func (l *Tracker) Claimants(keys []Key) []Owner {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[Owner]struct{}{}
	byName := map[kind]map[string]struct{}{}
	for _, key := range keys {
		k := unique.Make(key.GroupKind)
		if l.isElsewhereLocked(k, key) {
			if byName[k] == nil {
				byName[k] = map[string]struct{}{}
			}
			byName[k][key.Name] = struct{}{}
		} else if r := l.findLocked(key); r != nil {
			r.claimants(found)
		}
	}
	for k, names := range byName {
		for n, r := range l.records[k] {
			if _, wanted := names[n.name]; wanted {
				r.claimants(found)
			}
		}
	}
	for owner, has := range l.ignored {
		if slices.ContainsFunc(keys, func(key Key) bool { return hasByName(has, key) }) {
			found[owner] = struct{}{}
		}
	}
	for owner := range l.unrecorded {
		found[owner] = struct{}{}
	}
	return slices.Collect(maps.Keys(found))
}

// isElsewhereLocked reports whether an object may be on record at another place than the key's: with a namespace where
// the key has none, or without one.
func (l *Tracker) isElsewhereLocked(k kind, key Key) bool {
	if key.Namespace == "" {
		return l.namespaced[k] > 0
	}
	return len(l.records[k]) > l.namespaced[k]
}

func (r *record) claimants(into map[Owner]struct{}) {
	for _, o := range r.owners {
		into[o.owner] = struct{}{}
	}
}

// hasByName reports whether a set has an object by the kind and name of a key.
func hasByName(set map[Key]struct{}, key Key) bool {
	if _, exactly := set[key]; exactly {
		return true
	}
	for other := range set {
		if other.GroupKind == key.GroupKind && other.Name == key.Name {
			return true
		}
	}
	return false
}

// SeeInventory records the inventory of a ManagedResource as the source has it. An object in it may not be on record
// yet, because no run has begun or another process wrote the inventory: until it is, Claimants returns the
// ManagedResource for every request. An empty inventory forgets the ManagedResource.
func (l *Tracker) SeeInventory(owner Owner, keys []Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unrecorded[owner] = slices.DeleteFunc(keys, func(key Key) bool { return l.isRecordedLocked(owner, key) })
	if len(l.unrecorded[owner]) == 0 {
		delete(l.unrecorded, owner)
	}
}

// recordedLocked removes, from the unrecorded objects of a ManagedResource, those that are on record now.
func (l *Tracker) recordedLocked(owner Owner) {
	if missing, some := l.unrecorded[owner]; some {
		missing = slices.DeleteFunc(missing, func(key Key) bool { return l.isRecordedLocked(owner, key) })
		if l.unrecorded[owner] = missing; len(missing) == 0 {
			delete(l.unrecorded, owner)
		}
	}
}

// isRecordedLocked reports whether an object is on record for a ManagedResource, or among those that it has while it
// is ignored.
func (l *Tracker) isRecordedLocked(owner Owner, key Key) bool {
	if _, has := l.ignored[owner][key]; has {
		return true
	}
	o, r := l.owners[owner], l.findLocked(key)
	return o != nil && r != nil && slices.Contains(r.owners, o)
}
