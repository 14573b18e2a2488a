package simulation

import (
	"maps"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/simulation/apiserver"
)

// checkSettled compares the world at rest with what is wanted.
func (w *world) checkSettled() {
	w.mu.Lock()
	running := []string{w.leader.name}
	if w.other != nil {
		running = append(running, w.other.name)
	}
	w.mu.Unlock()
	w.lock.Lock()
	w.running = running
	defer w.lock.Unlock()
	if w.blind["source/secrets"] || w.blind["source/managedresources"] {
		return // What is wanted now was not told to anybody.
	}
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource == managedResources {
			w.checkManagedResource(key, mr)
		}
	}
	for key, wishes := range w.wanted {
		if !w.blind["target/"+key.Resource] {
			w.checkObject(key, wishes)
		}
	}
	if !w.excused() {
		w.checkLeftovers()
	}
}

func (w *world) checkManagedResource(key apiserver.Key, mr object) {
	if apiserver.Text(mr, "metadata", "deletionTimestamp") != "" {
		if w.servesLocked(mr) {
			w.violateLocked(letsGo, "%s is being deleted and has finalizers %v", key.Name, apiserver.Meta(mr)["finalizers"])
		}
		return
	}
	if !w.concernsLocked(mr) {
		return
	}
	if !w.servesLocked(mr) {
		w.violateLocked(hasFinalizer, "%s has finalizers %v", key.Name, apiserver.Meta(mr)["finalizers"])
	}
	wishes, ok := w.wishesLocked(key, mr)
	applied := condition(mr, "ResourcesApplied")
	if wishes == nil {
		if applied != "False" {
			w.violateLocked(conditionTrue, "a Secret of %s is missing, and ResourcesApplied is %q", key.Name, applied)
		}
		return
	}
	for at := range wishes {
		if o := w.target.GetLocked(at); o != nil && o["immutable"] == true && !w.replaceable(at, o, classOf(mr)) {
			return
		}
	}
	if !ok {
		return
	}
	generation := apiserver.Text(mr, "metadata", "generation")
	if observed := apiserver.Text(mr, "status", "observedGeneration"); observed != generation || applied != "True" {
		w.violateLocked(becomesWanted, "%s has generation %s and observed %s, ResourcesApplied is %s: %s", key.Name, generation, observed, applied, marshal(mr["status"]))
		return
	}
	// Two that want an object differently take turns, and one that was written a moment ago is not rolled out. What somebody was not told of after a
	// restore is judged by what it was before.
	excepted := slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at apiserver.Key) bool {
		return w.isFoughtOver(at) || w.blind["target/"+at.Resource]
	})
	if healthy := condition(mr, "ResourcesHealthy"); healthy != "True" && !excepted {
		w.violateLocked(conditionTrue, "ResourcesHealthy of %s is %s: %s", key.Name, healthy, marshal(mr["status"]))
	}
	inventory := inventoryOf(mr)
	for at := range wishes {
		if !contains(inventory, at) {
			w.violateLocked(doneAsTold, "%s has no entry for %s", key.Name, at)
		}
	}
	for _, entry := range inventory {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at apiserver.Key) bool { return same(at, entry) }) {
			w.violateLocked(becomesWanted, "%s still has an entry for %s", key.Name, entry)
		}
	}
}

// servesLocked says whether the finalizers of a ManagedResource are those of an instance that runs.
func (w *world) servesLocked(mr object) bool {
	if apiserver.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationIgnore) != "" {
		return false
	}
	finalizers, _ := apiserver.Meta(mr)["finalizers"].([]any)
	return slices.ContainsFunc(finalizers, func(f any) bool {
		return f == resourcesv1alpha1.FinalizerName || w.scenario.Classes && f == resourcesv1alpha1.FinalizerName+"-other"
	})
}

func (w *world) checkObject(key apiserver.Key, wishes []wish) {
	for _, wish := range wishes {
		if _, ok := w.wishesLocked(wish.mr, w.source.GetLocked(wish.mr)); !ok {
			return // Its ManagedResource can't be applied as a whole.
		}
	}
	for mrKey, mr := range w.source.AllLocked() {
		// One that can't be applied as a whole, or that nobody looks after, may have the object, too.
		if _, ok := w.wishesLocked(mrKey, mr); mrKey.GroupResource == managedResources && !ok && contains(inventoryOf(mr), key) {
			return
		}
	}
	key, _ = w.keyLocked(thingAt(key))
	o := w.target.GetLocked(key)
	if o != nil && o["immutable"] == true && !slices.ContainsFunc(wishes, func(wish wish) bool { return w.replaceable(key, o, wish.class) }) {
		return // It was there before, can't be changed, and is not ours to replace.
	}
	if o == nil {
		w.violateLocked(becomesWanted, "%s is missing, which %s wants", key, wishes[0].mr.Name)
		return
	}
	if slices.ContainsFunc(wishes, func(wish wish) bool { return wish.value == anything }) {
		return // It is there.
	}
	is := valueOf(thingAt(key), o)
	names, values := []string{}, []string{}
	for _, wish := range wishes {
		names, values = append(names, originOf(wish.mr)), append(values, wish.value)
	}
	if w.contested[unscoped(key)] { // What another one injected may stay on it.
		is = unlabelled(is)
		for i := range values {
			values[i] = unlabelled(values[i])
		}
	}
	if !slices.Contains(values, is) {
		w.violateLocked(becomesWanted, "%s is %s, and %v want %v", key, is, names, values)
	}
	if owner := origin(o); !slices.Contains(names, owner) {
		w.violateLocked(becomesWanted, "%s has the origin %q, and %v want it", key, owner, names)
	}
}

// checkLeftovers is about objects that are ours and that nobody wants.
func (w *world) checkLeftovers() {
	for key, o := range w.target.AllLocked() {
		if thingAt(key) == nil || !w.owned(o) || origin(o) == "" || len(w.wanted[unscoped(key)]) > 0 || w.inInventoryLocked(key, apiserver.Key{}) {
			continue
		}
		if w.kept[unscoped(key)] || w.stray[apiserver.Text(o, "metadata", "uid")] || w.scenario.Classes && w.contested[unscoped(key)] {
			continue
		}
		w.violateLocked(keepsEntry, "%s is ours, and no inventory has it", key)
	}
}

// isFoughtOver says whether there are some that want an object differently, or that do not look after each other's.
func (w *world) isFoughtOver(key apiserver.Key) bool {
	wishes := w.wanted[unscoped(key)]
	return slices.ContainsFunc(wishes, func(one wish) bool {
		return slices.ContainsFunc(wishes, func(another wish) bool {
			return one.class != another.class || one.value != another.value && one.value != anything && another.value != anything
		})
	})
}

// countFrom begins to count requests.
func (w *world) countFrom() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.baseline = w.countLocked()
}

func (w *world) countLocked() int {
	n := 0
	for class, count := range w.sent {
		if !strings.HasSuffix(class, "watch") {
			n += count
		}
	}
	return n
}

// checkIdle is about requests that are sent although nothing happened.
func (w *world) checkIdle() {
	w.mu.Lock()
	sent, forbidden := w.countLocked()-w.baseline, len(w.forbidden)
	w.mu.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	failing := 0
	for key, mr := range w.source.AllLocked() {
		// After a restore that nobody told of, an instance goes by the status that it has written, not by the one that is there.
		if key.GroupResource == managedResources && (w.blind["source/managedresources"] || condition(mr, "ResourcesApplied") != "True" || condition(mr, "ResourcesHealthy") != "True") {
			failing++
		}
	}
	// A ManagedResource that fails is tried once a minute, with some requests for each of its objects.
	fought := slices.ContainsFunc(slices.Collect(maps.Keys(w.wanted)), w.isFoughtOver)
	if fought || forbidden > 0 || w.blind["source/managedresources"] {
		return // Two that want different things take turns, what no watch covers is read, and who was not told of a restore tries what is overtaken.
	}
	allowed := failing * 3 * 4 * len(things)
	if period := w.scenario.More.Audit; period > 0 {
		// Each audit lists each kind, and reads what names one of ours and nobody has.
		allowed += (int(idle/period) + 1) * (len(w.instances) + 1) * 2 * len(things)
	}
	if sent > allowed {
		w.violateLocked(comesToRest, "%d requests in %v, and %d ManagedResources fail", sent, idle, failing)
	}
}
