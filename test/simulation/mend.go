package simulation

import (
	"net/http"
	"slices"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// mend puts back for good what steps have taken away, so that in the end nothing is left that would have to be excused: Secrets, the kind of widgets,
// the right to watch, and that a ManagedResource is looked after. No watch can go on, so that each instance lists what there is.
func (w *world) mend() {
	w.tracef("== mended")
	w.release()
	for i := range w.scenario.References {
		w.annotate(mrKey(i), resourcesv1alpha1.AnnotationIgnore, nil)
	}
	for i, c := range w.scenario.Secrets {
		if w.get(w.source, secretKey(i)) == nil {
			w.takeSecret(i, c)
		}
	}
	if w.get(w.target, fake.Key{GroupResource: crdResource, Name: "widgets.things.example.org"}) == nil {
		w.define(true)
	}
	for _, t := range things {
		if t.resource == crdResource && w.get(w.target, w.keyOf(t)) == nil {
			w.create(t, 0)
		}
	}
	for i := range w.scenario.References {
		if mr := w.get(w.source, mrKey(i)); mr != nil && w.describesTwice(mr) {
			w.reference(i, 1+i%2)
		}
	}
	if w.scenario.Seed%8 != 1 {
		for _, mr := range w.fighters() {
			w.request(w.source, http.MethodDelete, w.pathOf(w.source, mr), nil)
		}
	}
	for key, o := range w.irreplaceable() {
		w.tracef("-- somebody deletes %s of %q, which cannot become what is wanted", key, origin(o))
		w.request(w.target, http.MethodDelete, w.pathOf(w.target, key), nil)
	}
	w.mu.Lock()
	clear(w.forbidden)
	w.mu.Unlock()
	for _, cluster := range []string{"source", "target"} {
		server := w.server(cluster)
		server.Advance(100_000)
		server.CutWatches(func(string, *fake.Kind) bool { return true })
	}
}

// describesTwice reports whether two Secrets of a ManagedResource describe the same object.
func (w *world) describesTwice(mr object) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.describesTwiceLocked(mr)
}

func (w *world) describesTwiceLocked(mr object) bool {
	seen := map[string]bool{}
	for _, name := range referencesOf(mr) {
		secret := w.source.GetLocked(fake.Key{GroupResource: secretResource, Namespace: sourceNamespace, Name: name})
		data, _ := secret["data"].(map[string]any)
		for key := range data {
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// fighters are the ManagedResources that want an object otherwise than one that comes before them.
func (w *world) fighters() []fake.Key {
	w.lock.Lock()
	defer w.lock.Unlock()
	var found []fake.Key
	for i := 1; i < len(w.scenario.References); i++ {
		for at, wishes := range w.wanted {
			if w.isFoughtOver(at) && slices.ContainsFunc(wishes, func(wish wish) bool { return wish.mr == mrKey(i) }) {
				found = append(found, mrKey(i))
				break
			}
		}
	}
	return found
}

// irreplaceable are objects that cannot become what is wanted.
func (w *world) irreplaceable() map[fake.Key]object {
	w.lock.Lock()
	defer w.lock.Unlock()
	stuck := map[fake.Key]object{}
	for at, wishes := range w.wanted {
		key, _ := w.keyLocked(thingAt(at))
		for _, wish := range wishes {
			if w.isStuck(key, wish.value, wish.class) {
				stuck[key] = w.target.GetLocked(key)
			}
		}
	}
	return stuck
}
