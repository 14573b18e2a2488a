package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/ledger"
)

var autoscalerKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}

// autoscalersWithin is how long the first list of autoscalers may take before whoever needs it fails.
const autoscalersWithin = 15 * time.Second

// Autoscalers knows which objects a HorizontalPodAutoscaler scales (MR-20, MR-21). It watches all of them, whoever manages
// them, from the first time somebody asks, and keeps their targets only.
type Autoscalers struct {
	watches *Watches

	mu       sync.Mutex
	started  bool
	ready    chan struct{}
	lastErr  error
	targetOf map[types.UID]apply.Key
	count    map[apply.Key]int
}

func newAutoscalers(w *Watches) *Autoscalers {
	return &Autoscalers{watches: w, ready: make(chan struct{}), targetOf: map[types.UID]apply.Key{}, count: map[apply.Key]int{}}
}

// Ready waits until all autoscalers are known, or tells why they are not.
func (a *Autoscalers) Ready(ctx context.Context) error {
	if a.watches.disabled {
		return a.list(ctx)
	}
	mapping, err := a.watches.client.mapping(autoscalerKind)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to compute all HPA target ref object keys: failed to list all HPAs: %w", err)
	}
	a.start(mapping)
	select {
	case <-a.ready:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, autoscalersWithin)
	defer cancel()
	select {
	case <-a.ready:
		return nil
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		err := a.lastErr
		if err == nil {
			err = ctx.Err()
		}
		return fmt.Errorf("failed to compute all HPA target ref object keys: failed to list all HPAs: %w", err)
	}
}

// Scales says whether an autoscaler has the replicas of the object under one of the keys.
func (a *Autoscalers) Scales(keys []apply.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		if a.count[key] > 0 {
			return true
		}
	}
	return false
}

func (a *Autoscalers) start(mapping *meta.RESTMapping) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches.mu.Lock()
	ctx := a.watches.ctx
	a.watches.mu.Unlock()
	if a.started || ctx == nil {
		return
	}
	a.started = true
	resource := a.watches.client.dynamic.Resource(mapping.Resource)
	everything := func(*metav1.ListOptions) {}
	source := listWatch(everything, func(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		list, err := resource.List(ctx, options)
		a.noteError(err)
		return list, err
	}, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		w, err := resource.Watch(ctx, options)
		a.noteError(err)
		return w, err
	})
	log := a.watches.log.WithValues("groupVersionKind", autoscalerKind.String())
	reflector := cache.NewReflectorWithOptions(source, nil, a, cache.ReflectorOptions{
		Name: "autoscalers", MinWatchTimeout: minWatchTimeout, Logger: &log, TypeDescription: autoscalerKind.String(),
	})
	watching.Inc()
	go reflector.RunWithContext(ctx)
}

func (a *Autoscalers) noteError(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastErr = err
}

func (a *Autoscalers) list(ctx context.Context) error {
	resource, err := a.watches.client.resource(autoscalerKind, "")
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err == nil {
		count("list")
		var list *unstructured.UnstructuredList
		if list, err = resource.List(ctx, metav1.ListOptions{}); err == nil {
			objects := make([]any, len(list.Items))
			for i := range list.Items {
				objects[i] = &list.Items[i]
			}
			return a.replace(objects)
		}
	}
	return fmt.Errorf("failed to compute all HPA target ref object keys: failed to list all HPAs: %w", err)
}

// Add implements cache.ReflectorStore.
func (a *Autoscalers) Add(object any) error { return a.Update(object) }

// Update implements cache.ReflectorStore.
func (a *Autoscalers) Update(object any) error {
	autoscaler, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	key, err := targetOfAutoscaler(autoscaler)
	if err != nil {
		// One malformed autoscaler must not keep everything else from being applied (MRB-12).
		a.watches.log.Info("Ignoring a HorizontalPodAutoscaler", "object", apply.NameOf(autoscaler), "reason", err.Error())
		return a.Delete(object)
	}
	a.set(autoscaler.GetUID(), key)
	return nil
}

// Delete implements cache.ReflectorStore.
func (a *Autoscalers) Delete(object any) error {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	a.set(accessor.GetUID(), apply.Key{})
	return nil
}

// Replace implements cache.ReflectorStore.
func (a *Autoscalers) Replace(objects []any, _ string) error {
	if err := a.replace(objects); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.ready:
	default:
		close(a.ready)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (a *Autoscalers) Resync() error { return nil }

func (a *Autoscalers) replace(objects []any) error {
	listed := map[types.UID]struct{}{}
	for _, object := range objects {
		if err := a.Update(object); err != nil {
			return err
		}
		listed[object.(metav1.Object).GetUID()] = struct{}{}
	}
	a.mu.Lock()
	var gone []types.UID
	for uid := range a.targetOf {
		if _, found := listed[uid]; !found {
			gone = append(gone, uid)
		}
	}
	a.mu.Unlock()
	for _, uid := range gone {
		a.set(uid, apply.Key{})
	}
	return nil
}

// set notes the target of an autoscaler, none for an empty key. A target that gains its first or loses its last one is
// looked at again, since its replicas change hands.
func (a *Autoscalers) set(uid types.UID, key apply.Key) {
	a.mu.Lock()
	before, had := a.targetOf[uid]
	if had && before == key {
		a.mu.Unlock()
		return
	}
	var suspects []apply.Key
	if had {
		delete(a.targetOf, uid)
		if a.count[before]--; a.count[before] == 0 {
			delete(a.count, before)
			suspects = append(suspects, before)
		}
	}
	if key != (apply.Key{}) {
		a.targetOf[uid] = key
		if a.count[key]++; a.count[key] == 1 {
			suspects = append(suspects, key)
		}
	}
	a.mu.Unlock()
	for _, suspect := range suspects {
		a.watches.ledger.Suspect(ledger.Key{GroupKind: schema.GroupKind(suspect.GroupKind()), Namespace: suspect.Namespace, Name: suspect.Name})
	}
}

func targetOfAutoscaler(autoscaler *unstructured.Unstructured) (apply.Key, error) {
	apiVersion, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apply.Key{}, fmt.Errorf("invalid API version in scaleTargetRef: %w", err)
	}
	return apply.Key{Group: gv.Group, Kind: kind, Namespace: autoscaler.GetNamespace(), Name: name}, nil
}
