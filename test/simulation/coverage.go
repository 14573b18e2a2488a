package simulation

import (
	"fmt"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// coverage are the pairs that a run met: what the ManagedResources were like, and which step was taken or which fault hit a request then; and which step
// came after which.
type coverage map[string]bool

// merge adds what another run met, and reports whether any of it is new.
func (c coverage) merge(o coverage) bool {
	before := len(c)
	for pair := range o {
		c[pair] = true
	}
	return len(c) > before
}

// meets notes that something happens now.
func (w *world) meets(what string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.met[w.stateLocked()+" "+what] = true
	if kind, step := strings.CutPrefix(what, "step "); step {
		w.met[w.latestStep+" then "+kind] = true
		w.latestStep = kind
	}
}

// stateLocked is what the ManagedResources are like, the same for all that differ by their names only.
func (w *world) stateLocked() string {
	var states []string
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource == managedResources {
			states = append(states, w.phaseOf(key, mr))
		}
	}
	slices.Sort(states)
	return fmt.Sprintf("%d:%s", len(w.runningNow()), strings.Join(states, ","))
}

// phaseOf is what a ManagedResource is like: a letter for where it stands, and signs for what its inventory has beside what is wanted.
func (w *world) phaseOf(key fake.Key, mr object) string {
	inventory := inventoryOf(mr)
	phase := "new"
	switch applied := condition(mr, "ResourcesApplied"); {
	case fake.Text(mr, "metadata", "deletionTimestamp") != "":
		phase = "deleting"
	case fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationIgnore) != "":
		phase = "ignored"
	case w.lacksSecretLocked(key):
		phase = "lacking"
	case applied != "":
		phase = applied
	}
	if slices.ContainsFunc(inventory, func(at fake.Key) bool {
		return !slices.ContainsFunc(w.wanted[unscoped(at)], func(wish wish) bool { return wish.mr == key })
	}) {
		phase += "-" // Something is to be deleted.
	}
	if slices.ContainsFunc(inventory, func(at fake.Key) bool { return len(w.wanted[unscoped(at)]) > 1 }) {
		phase += "&" // Something is shared.
	}
	if slices.ContainsFunc(inventory, func(at fake.Key) bool { return w.lately(at)&held != 0 }) {
		phase += "h" // Something is held.
	}
	return phase
}
