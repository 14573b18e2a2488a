package simulation

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// take lets a step happen. A step that makes no sense at the moment does nothing.
func (w *world) take(step Step) {
	mr, t := mrKey(step.A%3), things[step.A%len(things)]
	cluster, resource := []string{"source", "target"}[step.A%2], w.resourceOf(step)
	server := w.server(cluster)
	lasts := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}[step.B%3]
	switch step.Do {
	case "secret":
		w.takeSecret(step.A%2, step.Content)
	case "secret-delete":
		w.request(w.source, http.MethodDelete, w.pathOf(w.source, secretKey(step.A%2)), nil)
	case "secret-recreate":
		w.request(w.source, http.MethodDelete, w.pathOf(w.source, secretKey(step.A%2)), nil)
		w.takeSecret(step.A%2, step.Content)
	case "mr":
		w.reference(step.A%3, 1+step.B%3)
	case "mr-delete":
		w.request(w.source, http.MethodDelete, w.pathOf(w.source, mr), nil)
	case "mr-recreate":
		w.request(w.source, http.MethodDelete, w.pathOf(w.source, mr), nil)
		w.rebooting.Go(func() {
			for range 200 {
				if w.get(w.source, mr) == nil {
					w.reference(step.A%3, 1+step.B%3)
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	case "reconcile":
		w.annotate(mr, resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationReconcile)
	case "ignore":
		w.annotate(mr, resourcesv1alpha1.AnnotationIgnore, []any{"true", nil, nil}[step.B%3])
	case "keep":
		w.spec(mr, object{"keepObjects": step.B%2 == 0})
	case "labels":
		w.spec(mr, object{"injectLabels": object{"sim": strconv.Itoa(step.B % 3)}})
	case "class":
		w.spec(mr, object{"class": []any{"other", nil}[step.B%2]})
	case "drift":
		w.editThing(t, func(o object) { w.setValue(t, o, step.B%5) })
	case "strip":
		w.editThing(t, func(o object) {
			if step.B%2 == 0 {
				delete(fake.Meta(o), "labels")
			} else {
				delete(fake.Meta(o), "annotations")
			}
		})
	case "drift-delete":
		w.request(w.target, http.MethodDelete, w.pathOf(w.target, w.keyOf(t)), nil)
	case "create":
		w.create(t, step.B%5)
	case "hold":
		w.editThing(t, func(o object) { fake.Meta(o)["finalizers"] = []any{"example.org/hold"} })
	case "let-go":
		w.editThing(t, func(o object) { delete(fake.Meta(o), "finalizers") })
	case "crd":
		w.undefine()
		w.define(step.B%2 == 0)
	case "crd-delete":
		w.undefine()
	case "crash":
		w.mu.Lock()
		leader := w.leader
		w.mu.Unlock()
		w.crash(leader)
	case "handover":
		w.handOver(time.Duration(step.B) * 300 * time.Millisecond)
	case "cut":
		server.CutWatches(func(_ string, k *fake.Kind) bool { return resource == "" || k.Resource == resource })
	case "stall":
		w.disturb(w.stalled, cluster+"/"+resource, lasts)
	case "deny":
		w.disturb(w.denied, cluster+"/"+resource, lasts)
		server.CutWatches(func(_ string, k *fake.Kind) bool { return k.Resource == resource })
	case "compact":
		server.Compact()
		server.CutWatches(func(string, *fake.Kind) bool { return true })
	case "down":
		w.disturb(w.down, cluster, lasts)
		server.CutWatches(func(string, *fake.Kind) bool { return true })
	case "forbid":
		// For good: what no watch covers is looked at once a sync period.
		if step.A%2 == 1 && resource != "" {
			w.mu.Lock()
			w.forbidden[resource] = true
			w.mu.Unlock()
			server.CutWatches(func(_ string, k *fake.Kind) bool { return k.Resource == resource })
		}
	case "restore":
		// One of the backups that were made before each step.
		w.lock.Lock()
		w.restored[cluster], w.restoredAt[cluster] = true, time.Now()
		w.noteValues()
		w.lock.Unlock()
		server.Restore(w.backups[cluster][step.B%len(w.backups[cluster])])
		w.lock.Lock()
		w.wantLocked()
		w.lock.Unlock()
		w.poke()
	case "lose", "stale", "lag":
		w.takeStoreFault(step, server, cluster, resource)
	default:
		w.takeHold(step, t)
	}
}

// meddle lets somebody else change what was just written to the target.
func (w *world) meddle(cluster string, r *fake.Request, remove bool) {
	key := r.Key()
	if r.Verb == "create" {
		key.Name = fake.Text(decode(string(r.Body)), "metadata", "name")
	}
	t := thingAt(key)
	if cluster != "target" || t == nil || r.Verb == "delete" {
		return
	}
	if remove {
		w.request(w.target, http.MethodDelete, w.pathOf(w.target, key), nil)
		return
	}
	w.editThing(t, func(o object) { w.setValue(t, o, int(w.chance("meddle")%5)) })
}

// setValue puts a value into an object that is there.
func (w *world) setValue(t *thing, o object, value int) {
	for name, field := range decode(marshal(t.make(value))) {
		if name != "metadata" && name != "immutable" {
			o[name] = field
		}
	}
}

func (w *world) server(cluster string) *fake.Server {
	if cluster == "source" {
		return w.source
	}
	return w.target
}

// resourceOf is the resource that a step about watches means; "" for all.
func (w *world) resourceOf(step Step) string {
	if step.A%2 == 0 {
		return []string{"managedresources", "secrets", ""}[step.B/3%3]
	}
	return []string{"configmaps", "networkpolicies", "deployments", "widgets", ""}[(step.A/2+step.B)%5]
}

// disturb begins a disturbance that ends by itself.
func (w *world) disturb(until map[string]time.Time, what string, lasts time.Duration) {
	w.mu.Lock()
	until[what] = time.Now().Add(lasts)
	w.mu.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	w.lag += lasts
}

func mrKey(i int) fake.Key {
	return fake.Key{GroupResource: managedResources, Namespace: sourceNamespace, Name: fmt.Sprintf("m%d", i)}
}

func secretKey(i int) fake.Key {
	return fake.Key{GroupResource: secretResource, Namespace: sourceNamespace, Name: fmt.Sprintf("s%d", i)}
}

func (w *world) takeSecret(i int, c content) {
	key := secretKey(i)
	o := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": key.Name}, "data": c.data()}
	if isNotFound(w.request(w.source, http.MethodPut, w.pathOf(w.source, key), o)) {
		key.Name = ""
		w.request(w.source, http.MethodPost, w.pathOf(w.source, key), o)
	}
}

func (w *world) reference(i, refs int) {
	var references []any
	for s := range 2 {
		if refs>>s&1 == 1 {
			references = append(references, object{"name": secretKey(s).Name})
		}
	}
	if !w.spec(mrKey(i), object{"secretRefs": references}) {
		key := mrKey(i)
		o := object{"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "metadata": object{"name": key.Name}, "spec": object{"secretRefs": references}}
		key.Name = ""
		w.request(w.source, http.MethodPost, w.pathOf(w.source, key), o)
	}
}

func (w *world) spec(mr fake.Key, spec object) bool {
	return !isNotFound(w.request(w.source, http.MethodPatch, w.pathOf(w.source, mr), object{"spec": spec}))
}

func (w *world) annotate(mr fake.Key, name string, value any) {
	w.request(w.source, http.MethodPatch, w.pathOf(w.source, mr), object{"metadata": object{"annotations": object{name: value}}})
}

// keyOf is where a thing is at present.
func (w *world) keyOf(t *thing) fake.Key {
	w.lock.Lock()
	defer w.lock.Unlock()
	key, _ := w.keyLocked(t)
	return key
}

// editThing changes a thing on the target, if it is there.
func (w *world) editThing(t *thing, edit func(object)) {
	key := w.keyOf(t)
	if o := w.get(w.target, key); o != nil {
		o = runtime.DeepCopyJSON(o)
		edit(o)
		w.request(w.target, http.MethodPut, w.pathOf(w.target, key), o)
	}
}

// create makes a thing on the target that is not ours.
func (w *world) create(t *thing, value int) {
	key := w.keyOf(t)
	o := decode(marshal(t.make(value)))
	if key.Namespace == "" {
		delete(fake.Meta(o), "namespace")
	}
	key.Name = ""
	w.request(w.target, http.MethodPost, w.pathOf(w.target, key), o)
}

func (w *world) define(namespaced bool) {
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	w.request(w.target, http.MethodPost, w.pathOf(w.target, fake.Key{GroupResource: crdResource}), definition("Widget", "widgets", scope))
}

func (w *world) undefine() {
	w.request(w.target, http.MethodDelete, w.pathOf(w.target, fake.Key{GroupResource: crdResource, Name: "widgets.things.example.org"}), nil)
}
