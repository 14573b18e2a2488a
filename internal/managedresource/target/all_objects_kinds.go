package target

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// allObjectsKinds are the kinds that are watched with all their objects. It has a lock of its own, as the tracker asks
// for scopes while it is locked.
type allObjectsKinds struct {
	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]struct{}
}

func (k *allObjectsKinds) has(gvk schema.GroupVersionKind) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, wide := k.kinds[gvk]
	return wide
}

func (k *allObjectsKinds) set(gvk schema.GroupVersionKind, wide bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kinds == nil {
		k.kinds = map[schema.GroupVersionKind]struct{}{}
	}
	if wide {
		k.kinds[gvk] = struct{}{}
	} else {
		delete(k.kinds, gvk)
	}
}

// byName reports whether the scope is a single object.
func (s scope) byName() bool { return s.name != "" && s.name != allNames && s != allAutoscalers }

// widenLocked gives a kind one watch for all its objects if too many are watched one by one.
func (w *Watches) widenLocked(refs []objects.Ref) {
	byName := map[schema.GroupVersionKind]map[scope]struct{}{}
	for _, ref := range refs {
		gvk := ref.GVK()
		if !ref.Unlabelled || w.wide.has(gvk) {
			continue
		}
		if byName[gvk] == nil {
			byName[gvk] = map[scope]struct{}{}
			for s, a := range w.active {
				if s.gvk == gvk && s.byName() && a.users > 0 {
					byName[gvk][s] = struct{}{}
				}
			}
		}
		byName[gvk][w.scopeOf(ref)] = struct{}{}
	}
	for gvk, scopes := range byName {
		if len(scopes) > fewByName {
			w.wide.set(gvk, true)
			w.moveLocked(gvk)
		}
	}
}

// moveLocked gives the ManagedResources that watch objects of a kind by name the watch of all its objects instead.
func (w *Watches) moveLocked(gvk schema.GroupVersionKind) {
	for owner, scopes := range w.byOwner {
		for s := range scopes {
			if s.gvk != gvk || !s.byName() {
				continue
			}
			all := w.scopeOf(objects.Ref{ID: objects.NewID(gvk.GroupKind(), s.namespace, s.name), Version: gvk.Version,
				Unlabelled: true})
			if _, has := scopes[all]; !has {
				w.byOwner[owner][all] = struct{}{}
				w.useLocked(all)
			}
			delete(w.byOwner[owner], s)
			w.releaseLocked(s)
		}
	}
}

// narrowLocked goes back to watches by name once the last watch of all objects of a kind has ended.
func (w *Watches) narrowLocked(ended scope) {
	if ended.name != allNames {
		return
	}
	for s := range w.active {
		if s.gvk == ended.gvk && s.name == allNames {
			return
		}
	}
	w.wide.set(ended.gvk, false)
}
