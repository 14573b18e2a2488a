package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
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
	w.settleContested()
	w.excuses = excuses{runs: 1}
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource == managedResources {
			w.checkManagedResource(key, mr)
		}
	}
	for key, wishes := range w.wanted {
		w.checkObject(key, wishes)
	}
	// Nobody deletes objects that a restore of the source took from an inventory, or that one of the target brought back.
	if len(w.restored) > 0 {
		w.excuses.leftovers = 1
	} else {
		w.checkLeftovers()
	}
	w.checkHolds()
	w.excuses.contested = min(1, len(w.contested))
	if slices.ContainsFunc(slices.Collect(maps.Keys(w.wanted)), w.isFoughtOver) {
		w.excuses.fought = 1
	}
}

func (w *world) checkManagedResource(key fake.Key, mr object) {
	if fake.Text(mr, "metadata", "deletionTimestamp") != "" {
		if w.servesLocked(mr) {
			w.violateLocked(letsGo, "%s is being deleted and has finalizers %v", key.Name, fake.Meta(mr)["finalizers"])
		}
		return
	}
	if !w.concernsLocked(mr) {
		return
	}
	if !w.servesLocked(mr) {
		w.violateLocked(hasFinalizer, "%s has finalizers %v", key.Name, fake.Meta(mr)["finalizers"])
	}
	w.excuses.managedResources++
	wishes, ok := w.wishesLocked(key, mr)
	applied := condition(mr, "ResourcesApplied")
	if !ok {
		if applied != "False" {
			w.violateLocked(conditionTrue, "%s cannot be applied as a whole, and ResourcesApplied is %q", key.Name, applied)
		}
		if wishes == nil {
			w.excuses.whole++ // Nobody can know what it wants.
		}
		return
	}
	stuck := slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at fake.Key) bool { return w.isStuck(at, wishes[at], classOf(mr)) })
	if !stuck && w.checkStatus(key, mr, wishes) {
		w.excuses.whole++
	}
	w.checkEntries(key, mr, wishes, stuck)
}

// isStuck reports whether an object cannot become what a ManagedResource of a class wants: it cannot be changed, and nobody can prove that it is ours to replace.
func (w *world) isStuck(at fake.Key, value, class string) bool {
	o := w.target.GetLocked(at)
	return o != nil && o["immutable"] == true && w.lately(at)&held == 0 && !w.replaceable(at, o, class) && unlabelled(valueOf(thingAt(at), o)) != unlabelled(value)
}

// checkStatus is about the status of a ManagedResource that can be applied as a whole; it reports whether all of it was judged.
func (w *world) checkStatus(key fake.Key, mr object, wishes map[fake.Key]string) bool {
	generation := fake.Text(mr, "metadata", "generation")
	if observed, applied := fake.Text(mr, "status", "observedGeneration"), condition(mr, "ResourcesApplied"); observed != generation || applied != "True" {
		w.violateLocked(becomesWanted, "%s has generation %s and observed %s, ResourcesApplied is %s: %s", key.Name, generation, observed, applied, marshal(mr["status"]))
		return true
	}
	// Instances of two classes that want a Deployment take turns, and one that was written a moment ago is not rolled out.
	if slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at fake.Key) bool {
		return w.isFoughtOver(at) && at.GroupResource == deploymentResource
	}) {
		return false
	}
	if slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at fake.Key) bool {
		return w.lately(at)&heldAway != 0 && w.target.GetLocked(at) == nil
	}) {
		return false // It is missing, and is not created as long as all is left alone.
	}
	if slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at fake.Key) bool {
		keeper, found := keeperIn(mr, key, at)
		return found && condition(w.source.GetLocked(keeper), "ResourcesApplied") != "True"
	}) {
		return false // An object stays as it is until its owner recovers (MRB-16).
	}
	if healthy := condition(mr, "ResourcesHealthy"); healthy != "True" {
		w.violateLocked(conditionTrue, "ResourcesHealthy of %s is %s: %s", key.Name, healthy, marshal(mr["status"]))
	}
	return true
}

// checkEntries is about the inventory of a ManagedResource; as long as one of its objects is stuck, old ones may stay.
func (w *world) checkEntries(key fake.Key, mr object, wishes map[fake.Key]string, stuck bool) {
	inventory := inventoryOf(mr)
	for at, value := range wishes {
		if !contains(inventory, at) && !w.isStuck(at, value, classOf(mr)) {
			w.violateLocked(doneAsTold, "%s has no entry for %s", key.Name, at)
		}
	}
	for _, entry := range inventory {
		if !stuck && !slices.ContainsFunc(slices.Collect(maps.Keys(wishes)), func(at fake.Key) bool { return same(at, entry) }) {
			w.violateLocked(becomesWanted, "%s still has an entry for %s", key.Name, entry)
		}
	}
}

// servesLocked reports whether the finalizers of a ManagedResource are those of an instance that runs.
func (w *world) servesLocked(mr object) bool {
	if fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationIgnore) != "" {
		return false
	}
	finalizers, _ := fake.Meta(mr)["finalizers"].([]any)
	return slices.ContainsFunc(finalizers, func(f any) bool {
		return f == resourcesv1alpha1.FinalizerName || w.scenario.Classes && f == resourcesv1alpha1.FinalizerName+"-other"
	})
}

func (w *world) checkObject(key fake.Key, wishes []wish) {
	for _, wish := range wishes {
		if _, ok := w.wishesLocked(wish.mr, w.source.GetLocked(wish.mr)); !ok {
			return // Its ManagedResource can't be applied as a whole.
		}
	}
	for mrKey, mr := range w.source.AllLocked() {
		// A ManagedResource that can't be applied as a whole, or that nobody looks after, may have the object, too.
		if _, ok := w.wishesLocked(mrKey, mr); mrKey.GroupResource == managedResources && !ok && contains(inventoryOf(mr), key) {
			return
		}
	}
	key, _ = w.keyLocked(thingAt(key))
	o := w.target.GetLocked(key)
	if !slices.ContainsFunc(wishes, func(wish wish) bool { return !w.isStuck(key, wish.value, wish.class) }) {
		return // It was there before, can't be changed, and is not ours to replace.
	}
	left := w.lately(key)
	if o == nil && left&heldAway != 0 {
		return
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
	// A label may stay on it that another one injected or injects, or a form that a restore took away.
	if w.contested[unscoped(key)] || differInLabel(values) || !slices.ContainsFunc(wishes, func(wish wish) bool { return w.recordsLabel(wish.mr, key) }) {
		is = unlabelled(is)
		for i := range values {
			values[i] = unlabelled(values[i])
		}
	}
	if owner := slices.Index(names, origin(o)); owner >= 0 && !w.isFoughtOver(key) && wishes[owner].value != anything {
		values = values[owner : owner+1] // It alone writes the object (MRB-16).
	}
	if left&held == 0 && !slices.Contains(values, is) {
		w.violateLocked(becomesWanted, "%s is %s, and %v want %v", key, is, names, values)
	}
	if owner := origin(o); !slices.Contains(names, owner) && left&heldAway == 0 {
		w.violateLocked(becomesWanted, "%s has the origin %q, and %v want it", key, owner, names)
	}
}

// differInLabel is true for values of which not all have the same label.
func differInLabel(values []string) bool {
	labels := map[string]bool{}
	for _, value := range values {
		_, label, _ := strings.Cut(value, "|")
		labels[label] = true
	}
	return len(labels) > 1
}

// recordsLabel reports whether anything tells whose an injected label of an object is: the entry of a ManagedResource has labels as they were applied. After a
// restore of the source it may lack one that a form injected which nobody knows any more, and an instance leaves a label alone that is not on record (MRL-6).
func (w *world) recordsLabel(mr, key fake.Key) bool {
	return !w.restored["source"] || slices.ContainsFunc(entriesOf(w.source.GetLocked(mr)), func(entry object) bool {
		return entry["name"] == key.Name && entry["kind"] == thingAt(key).kind && fake.Text(entry, "labels", "sim") != ""
	})
}

// checkLeftovers is about objects that are ours and that nobody wants.
func (w *world) checkLeftovers() {
	for key, o := range w.target.AllLocked() {
		if thingAt(key) == nil || !w.owned(o) || origin(o) == "" || len(w.wanted[unscoped(key)]) > 0 || w.inInventoryLocked(key, fake.Key{}) {
			continue
		}
		if w.kept[unscoped(key)] || w.stray[fake.Text(o, "metadata", "uid")] || w.scenario.Classes && w.contested[unscoped(key)] {
			continue
		}
		w.violateLocked(keepsEntry, "%s is ours, and no inventory has it", key)
	}
}

// isFoughtOver reports whether ManagedResources of two classes want an object: their instances take it from each other.
func (w *world) isFoughtOver(key fake.Key) bool {
	wishes := w.wanted[unscoped(key)]
	return slices.ContainsFunc(wishes, func(one wish) bool { return one.class != wishes[0].class })
}

// countFrom begins to count requests.
func (w *world) countFrom() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks = map[ask]int{}
}

// checkIdle is about requests that are sent although nothing happened.
func (w *world) checkIdle() {
	w.mu.Lock()
	asks := maps.Clone(w.asks)
	forbidden := maps.Clone(w.forbidden)
	w.mu.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	sent := map[ask]int{}
	total := 0
	for about, n := range asks {
		if n -= w.looksOfFighters(about); n > 0 && !w.mayBeAsked(about, forbidden) {
			sent[about] = n
			total += n
		}
	}
	failing := 0
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource == managedResources && (condition(mr, "ResourcesApplied") != "True" || condition(mr, "ResourcesHealthy") != "True") {
			failing++
		}
	}
	// A ManagedResource that fails is tried once a minute, with some requests for each of its objects.
	allowed := failing * 3 * 4 * len(things)
	if allowed > 0 {
		w.excuses.lax = 1
	}
	period := w.scenario.More.Audit
	if w.scenario.loses() {
		period = auditOfLost
	}
	if period > 0 {
		// Each audit lists each kind.
		allowed += (int(idle/period) + 1) * (len(w.instances) + 1) * 2 * len(things)
	}
	if total > allowed {
		w.violateLocked(comesToRest, "%d requests in %v, and %d ManagedResources fail: %v", total, idle, failing, sent)
	}
}

// looksOfFighters is how often an object may be looked at because ManagedResources that have it fight over another one, and were not done with a run: once
// a minute for each of them.
func (w *world) looksOfFighters(about ask) int {
	fighters := map[fake.Key]struct{}{}
	for at, wishes := range w.wanted {
		if about.cluster != "target" || !w.isFoughtOver(at) {
			continue
		}
		for _, wish := range wishes {
			if contains(w.inventoryLocked(wish.mr), about.key) {
				fighters[wish.mr] = struct{}{}
			}
		}
	}
	return len(fighters) * (int(idle/time.Minute) + 1)
}

// mayBeAsked reports whether somebody may ask for something at rest: an object that is fought over, and the ManagedResources that want it, their Secrets and
// their Events; and what no watch covers.
func (w *world) mayBeAsked(about ask, forbidden map[string]bool) bool {
	if about.cluster == "target" && forbidden[about.key.Resource] {
		return true
	}
	for at, wishes := range w.wanted {
		if !w.isFoughtOver(at) {
			continue
		}
		if about.cluster == "target" && (same(about.key, at) || at.Group != "" && about.key.GroupResource == crdResource) {
			return true // Also the definition of its kind.
		}
		if about.cluster == "target" && at.Resource == "deployments" && (about.key.Resource == "pods" || about.key.Resource == "replicasets") {
			return true // Each change of a Deployment is followed by a count of its Pods.
		}
		for _, wish := range wishes {
			if at.GroupResource == crdResource && about.cluster == "target" && contains(w.inventoryLocked(wish.mr), about.key) {
				return true // A changed definition has all objects of its ManagedResource looked at.
			}
			fights := about.key == wish.mr || about.key.GroupResource == secretResource && slices.Contains(referencesOf(w.source.GetLocked(wish.mr)), about.key.Name)
			if about.cluster == "source" && (fights || about.key.GroupResource == eventResource) {
				return true
			}
		}
	}
	return false
}
