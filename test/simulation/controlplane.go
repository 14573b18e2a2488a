package simulation

import (
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/test/fake"
)

// poke tells the control plane that there may be something to do.
func (w *world) poke() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// controlPlane does on the target what kube-controller-manager and the API server's own controllers do there.
func (w *world) controlPlane(stop <-chan struct{}) {
	w.atNews(stop, func(objects map[fake.Key]object) {
		w.serveCustomKinds(objects)
		for key, o := range objects {
			switch key.Resource {
			case "deployments":
				w.rollOut(key, o)
				w.makeReplicaSet(key, o, objects)
			case "replicasets":
				w.collectChildren(key, o, objects)
			case "customresourcedefinitions":
				w.establish(key, o)
			}
			w.collect(key, o)
		}
	})
}

// atNews calls play with what is on the target, a moment after something has changed there.
func (w *world) atNews(stop <-chan struct{}, play func(map[fake.Key]object)) {
	for {
		select {
		case <-stop:
			return
		case <-w.news:
		}
		time.Sleep(5*time.Millisecond + time.Duration(w.chance("control plane")%50)*time.Millisecond)
		w.lock.Lock()
		objects := make(map[fake.Key]object, 16)
		for key, o := range w.target.AllLocked() {
			objects[key] = o
		}
		w.lock.Unlock()
		play(objects)
	}
}

// serveCustomKinds serves what is defined, and deletes what is no longer.
func (w *world) serveCustomKinds(objects map[fake.Key]object) {
	for _, custom := range []struct{ kind, plural string }{{"Widget", "widgets"}, {"Gadget", "gadgets"}} {
		name := custom.plural + ".things.example.org"
		definition := objects[fake.Key{GroupResource: crdResource, Name: name}]
		resource := managedResources
		resource.Group, resource.Resource = "things.example.org", custom.plural
		w.lock.Lock()
		served := w.target.ServedLocked(resource)
		uid := w.servedBy[name]
		w.lock.Unlock()
		is, before := fake.Text(definition, "metadata", "uid"), served
		if served != nil && is != uid {
			for key := range objects {
				if key.GroupResource == resource {
					w.request(w.target, http.MethodPatch, w.pathOf(w.target, key), object{"metadata": object{"finalizers": nil}})
					w.request(w.target, http.MethodDelete, w.pathOf(w.target, key), nil)
				}
			}
			w.target.Withdraw(served)
			w.tracef("-- %s is served no more", custom.plural)
			served = nil
		}
		if served == nil && definition != nil {
			namespaced := fake.Text(definition, "spec", "scope") == "Namespaced"
			served = fake.CustomKind("things.example.org", "v1", custom.kind, custom.plural, namespaced)
			w.target.Serve(served)
			w.tracef("-- %s is served, namespaced: %t", custom.plural, namespaced)
		}
		if served == before && uid == is {
			continue
		}
		w.lock.Lock()
		w.servedBy[name] = is
		w.wantLocked()
		w.lock.Unlock()
	}
}

func (w *world) establish(key fake.Key, o object) {
	if o["status"] == nil {
		w.request(w.target, http.MethodPatch, w.pathOf(w.target, key)+"/status", object{"status": object{"conditions": []any{
			object{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"},
			object{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
		}}})
	}
}

func (w *world) rollOut(key fake.Key, o object) {
	generation, _ := fake.Meta(o)["generation"].(int64)
	if fake.Text(o, "status", "observedGeneration") == fake.Text(o, "metadata", "generation") {
		return
	}
	w.request(w.target, http.MethodPatch, w.pathOf(w.target, key)+"/status", object{"status": object{
		"observedGeneration": generation, // It has no Pods.
		"conditions": []any{
			object{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "ok"},
			object{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ok"},
		},
	}})
}

// collect ends a deletion in the foreground: nothing here has dependants.
func (w *world) collect(key fake.Key, o object) {
	finalizers, _ := fake.Meta(o)["finalizers"].([]any)
	if i := slices.Index(finalizers, any("foregroundDeletion")); i >= 0 {
		next := runtime.DeepCopyJSON(o)
		fake.Meta(next)["finalizers"] = slices.Delete(slices.Clone(finalizers), i, i+1)
		w.request(w.target, http.MethodPut, w.pathOf(w.target, key), next)
	}
}
