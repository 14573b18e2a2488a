package simulation

import (
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// keyLocked is where a thing is, and whether its kind is served.
func (w *world) keyLocked(t *thing) (fake.Key, bool) {
	if t.custom == "" {
		return t.key(t.namespaced), true
	}
	k := w.target.ServedLocked(t.resource)
	return t.key(k != nil && k.Namespaced), k != nil
}

// valueOf is the value of a thing and the label that ManagedResources inject. The one that somebody else gave it stays where none is wanted (MRL-6), and counts
// as none.
func valueOf(t *thing, o object) string {
	return t.value(o) + "|" + strings.TrimSuffix(labelOf(o), driftedLabel)
}

// unlabelled is a value without the label that a ManagedResource injects.
func unlabelled(value string) string {
	plain, _, _ := strings.Cut(value, "|")
	return plain
}

func thingAt(key fake.Key) *thing {
	for _, t := range things {
		if t.resource == key.GroupResource && t.key(false).Name == key.Name {
			return t
		}
	}
	return nil
}

// anything is the wish for an object that is created once: whatever it is, it is left alone.
const anything = "anything"

// isCreatedOnce reports whether all who have wanted an object for a while want it to be created only once.
func (w *world) isCreatedOnce(key fake.Key) bool {
	key = unscoped(key)
	return len(w.wanted[key]) > 0 && !w.contested[key] && !slices.ContainsFunc(w.wanted[key], func(wish wish) bool {
		return wish.value != anything || time.Since(wish.changed) < patience+w.lag
	})
}

// gaveUp reports whether a ManagedResource says of an object that it is not its own, or did a while ago.
func (w *world) gaveUp(mr, key fake.Key) bool {
	at, found := w.givenUp[claim{mr, unscoped(key)}]
	until, lacks := w.lacking[mr]
	if !lacks {
		until = time.Now()
	}
	return w.giving[claim{mr, unscoped(key)}] || found && until.Sub(at) < patience+w.lag
}

// noteLackingLocked notes which ManagedResources lack a Secret: what they said before is not told by an inventory as long as that is so.
func (w *world) noteLackingLocked(now time.Time) {
	for key := range w.source.AllLocked() {
		if _, lacked := w.lacking[key]; key.GroupResource == managedResources && !lacked && w.lacksSecretLocked(key) {
			w.lacking[key] = now
		}
	}
	for mr, since := range w.lacking {
		if w.lacksSecretLocked(mr) {
			continue
		}
		delete(w.lacking, mr)
		for c, at := range w.givenUp {
			if c.mr == mr {
				w.givenUp[c] = at.Add(now.Sub(since))
			}
		}
	}
}

// wishesLocked is what a ManagedResource wants; ok is false if it can't be said, because a Secret or a kind is missing, or
// because nobody is to look after it at present.
func (w *world) wishesLocked(key fake.Key, mr object) (wishes map[fake.Key]string, ok bool) {
	spec, _ := mr["spec"].(map[string]any)
	if fake.Text(mr, "metadata", "deletionTimestamp") != "" || !w.concernsLocked(mr) {
		return nil, false
	}
	wishes = map[fake.Key]string{}
	described := map[fake.Key]bool{}
	var twice []fake.Key
	label := fake.Text(spec, "injectLabels", "sim")
	ok = true
	for _, name := range referencesOf(mr) {
		secret := w.source.GetLocked(fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: name})
		if secret == nil {
			return nil, false
		}
		data, _ := secret["data"].(map[string]any)
		for _, t := range things {
			text, found := data[t.name+".json"].(string)
			if !found {
				continue
			}
			at, served := w.keyLocked(t)
			if !served && t.modes[text] != notOurs {
				ok = false
			}
			if described[at] {
				ok, twice = false, append(twice, at)
			}
			described[at] = true
			if t.modes[text] == keptObject {
				w.toKeep[unscoped(at)] = true
			}
			switch t.modes[text] {
			case notOurs:
				w.giving[claim{key, unscoped(at)}] = true
			case createdOnce:
				wishes[at] = anything
			default:
				wishes[at] = t.valueOfText(text) + "|" + label
			}
		}
	}
	for _, at := range twice {
		delete(wishes, at)               // What is described twice is an error.
		w.contested[unscoped(at)] = true // What another one injected meanwhile may stay on it.
		w.twice[unscoped(at)] = true
	}
	return wishes, ok
}

// concernsLocked reports whether an instance that runs is to look after a ManagedResource.
func (w *world) concernsLocked(mr object) bool {
	class := fake.Text(mr, "spec", "class")
	return fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationIgnore) == "" && (class == "" || class == "other" && w.scenario.Classes)
}

// lacksSecretLocked reports whether nobody can read at present what a ManagedResource says.
func (w *world) lacksSecretLocked(key fake.Key) bool {
	mr := w.source.GetLocked(key)
	return mr != nil && slices.ContainsFunc(referencesOf(mr), func(name string) bool {
		return w.source.GetLocked(fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: name}) == nil
	})
}

func referencesOf(mr object) []string {
	spec, _ := mr["spec"].(map[string]any)
	refs, _ := spec["secretRefs"].([]any)
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, fake.Text(ref.(map[string]any), "name"))
	}
	return names
}

// wantLocked computes anew what is wanted.
func (w *world) wantLocked() {
	now := time.Now()
	w.settleContested()
	before, twice, gave := w.wanted, w.twice, w.giving
	for at := range before {
		if w.isFoughtOver(at) {
			w.fought[at] = now
		}
	}
	w.giving = map[claim]bool{}
	w.wanted, w.twice = map[fake.Key][]wish{}, map[fake.Key]bool{}
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource != managedResources {
			continue
		}
		wishes, _ := w.wishesLocked(key, mr)
		for at, value := range wishes {
			labelled := fake.Text(w.target.GetLocked(at), "metadata", "labels", "sim") != ""
			at = unscoped(at)
			since, changed, fresh := now, now, !contains(inventoryOf(mr), at)
			if i := slices.IndexFunc(before[at], func(w wish) bool { return w.mr == key }); i >= 0 {
				fresh = before[at][i].fresh
				if before[at][i].class == classOf(mr) {
					since = before[at][i].since
				} else {
					w.until[at] = now // Who gave it up may just be about to delete it.
				}
				if before[at][i].value == value {
					changed = before[at][i].changed
				}
			} else if w.inInventoryLocked(at, key) || w.kept[at] || labelled {
				w.contested[at] = true // What its former ManagedResource injected stays on it when it is handed over, released, or was left behind.
			}
			w.wanted[at] = append(w.wanted[at], wish{key, value, classOf(mr), since, changed, fresh})
		}
	}
	for c := range gave {
		if !w.giving[c] {
			w.givenUp[c] = now
		}
	}
	for c := range w.giving {
		key, _ := w.keyLocked(thingAt(c.object))
		if o := w.target.GetLocked(key); o != nil && origin(o) == "" && contains(w.inventoryLocked(c.mr), key) {
			w.doubtful[fake.Text(o, "metadata", "uid")] = true // Its entry may stay while other objects fail.
		}
	}
	w.noteLackingLocked(now)
	for at := range before {
		if len(w.wanted[at]) == 0 {
			w.until[at] = now
		}
		if !sameWishes(before[at], w.wanted[at]) {
			w.stirred[at] = now
		}
	}
	for at := range w.wanted {
		if len(before[at]) == 0 {
			w.stirred[at] = now
		}
		if len(w.wanted[at]) > 1 && !sameWishes(before[at], w.wanted[at]) {
			w.contested[at] = true
		}
	}
	for at := range twice {
		w.until[at] = now
	}
}

// wantedLately reports whether somebody wanted an object a while ago or does now.
func (o *oracle) wantedLately(key fake.Key) bool {
	key = unscoped(key)
	until, found := o.until[key]
	return len(o.wanted[key]) > 0 || o.twice[key] || found && time.Since(until) < patience+o.lag
}

func sameWishes(before, after []wish) bool {
	return len(before) == len(after) && !slices.ContainsFunc(after, func(now wish) bool {
		return !slices.ContainsFunc(before, func(was wish) bool { return was.mr == now.mr && was.value == now.value && was.class == now.class })
	})
}

// settleContested ends that an object is contested: it is gone, or it is exactly what all its ManagedResources want and have in their inventories, and for
// a while neither it nor what is wanted of it has changed.
func (w *world) settleContested() {
	for at := range w.contested {
		if time.Since(w.stirred[at]) < patience+w.lag {
			continue
		}
		key, _ := w.keyLocked(thingAt(at))
		o := w.target.GetLocked(key)
		others := slices.ContainsFunc(w.wanted[at], func(wish wish) bool {
			return wish.value != valueOf(thingAt(at), o) || !contains(w.inventoryLocked(wish.mr), at)
		})
		if o == nil || len(w.wanted[at]) > 0 && !others && !w.isFoughtOver(at) {
			delete(w.contested, at)
		}
	}
}
