package simulation

import (
	"slices"

	"github.com/espalier-project/espalier/test/fake"
)

func (w *world) inventoryLocked(mr fake.Key) []fake.Key {
	return inventoryOf(w.source.GetLocked(mr))
}

func contains(keys []fake.Key, key fake.Key) bool {
	return slices.ContainsFunc(keys, func(k fake.Key) bool { return same(k, key) })
}

// same compares keys; the namespace of a kind whose scope changes is none where a manifest or an old entry has one.
func same(a, b fake.Key) bool { return unscoped(a) == unscoped(b) }

func unscoped(key fake.Key) fake.Key {
	if key.Group == "things.example.org" {
		key.Namespace = ""
	}
	return key
}

// entriesOf are the entries of an inventory as they are.
func entriesOf(mr object) []object {
	status, _ := mr["status"].(map[string]any)
	resources, _ := status["resources"].([]any)
	entries := make([]object, 0, len(resources))
	for _, entry := range resources {
		entries = append(entries, entry.(map[string]any))
	}
	return entries
}

func inventoryOf(mr object) []fake.Key {
	entries := entriesOf(mr)
	keys := make([]fake.Key, 0, len(entries))
	for _, ref := range entries {
		for _, t := range things {
			if t.kind == ref["kind"] && t.objectName == ref["name"] {
				keys = append(keys, fake.Key{GroupResource: t.resource, Namespace: fake.Text(ref, "namespace"), Name: fake.Text(ref, "name")})
			}
		}
	}
	return keys
}

// inInventoryLocked reports whether an inventory has an object, but for that of one ManagedResource.
func (w *world) inInventoryLocked(key, except fake.Key) bool {
	for mrKey, mr := range w.source.AllLocked() {
		if mrKey.GroupResource == managedResources && mrKey != except && contains(inventoryOf(mr), key) {
			return true
		}
	}
	return false
}

// recordedLocked reports whether an entry of an inventory is a record that we created an object: one that is created only once carries no origin
// that another ManagedResource could have taken away.
func (w *world) recordedLocked(key fake.Key, uid string) bool {
	for at, mr := range w.source.AllLocked() {
		if at.GroupResource != managedResources {
			continue
		}
		for _, ref := range entriesOf(mr) {
			if ref["uid"] == uid && ref["name"] == key.Name && ref["fieldPath"] == nil {
				return true
			}
		}
	}
	return false
}

// checkInventory is about what left the inventory with a write, or with the whole ManagedResource.
func (w *world) checkInventory(c fake.Change) {
	w.noteLetGo(c)
	if c.Before == nil || w.excused() {
		return
	}
	is := inventoryOf(c.After)
	if c.After == nil && fake.Text(c.Before, "spec", "keepObjects") == "true" {
		w.noteKept(c)
		return
	}
	for _, key := range inventoryOf(c.Before) {
		if t := thingAt(key); t != nil {
			key, _ = w.keyLocked(t) // An entry may be older than the scope of its kind.
		}
		o := w.target.GetLocked(key)
		if w.scenario.Classes && w.contested[unscoped(key)] {
			continue // Two instances that give up an object at the same moment may each leave it to the other.
		}
		if o != nil && !contains(is, key) && w.keeps(o) {
			w.kept[unscoped(key)] = true
			continue
		}
		if contains(is, key) || o == nil || !w.provable(o, c.By) || w.inInventoryLocked(key, c.Key) {
			continue
		}
		if origin(o) != originOf(c.Key) && origin(o) != "" || w.gaveUp(c.Key, key) {
			continue // Another ManagedResource has it by now, or says so.
		}
		w.violateLocked(keepsEntry, "%s removed %s from the inventory of %s, and it is there", c.By, key, c.Key.Name)
	}
}

// noteLetGo notes that a ManagedResource let go of objects that carry no origin. Its entry, and what the instance knew, may have been the only
// proof that they are ours; if nobody has an entry, nothing can prove it any more.
func (w *world) noteLetGo(c fake.Change) {
	is := inventoryOf(c.After)
	for _, key := range inventoryOf(c.Before) {
		if t := thingAt(key); t != nil {
			key, _ = w.keyLocked(t)
		}
		o := w.target.GetLocked(key)
		if o == nil || contains(is, key) || origin(o) != "" || !w.gaveUp(c.Key, key) {
			continue
		}
		uid := fake.Text(o, "metadata", "uid")
		w.doubtful[uid] = true
		if !w.scenario.Classes && !w.excused() && !w.inInventoryLocked(key, c.Key) {
			w.released[uid] = true
		}
	}
}
