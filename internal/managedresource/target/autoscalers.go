package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

var autoscalerKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}

const (
	// autoscalersWithin limits how long a caller waits for the list of autoscalers before it fails.
	autoscalersWithin = 15 * time.Second
	// autoscalerGrace is the time for which an object counts as scaled after its last autoscaler is gone: the replicas
	// must not be reset when an autoscaler is deleted and created again, to change an immutable field or by a tool that
	// replaces it.
	autoscalerGrace = time.Minute
)

// allAutoscalers is the scope of all autoscalers, managed or not. It is not reported to the tracker: managed
// autoscalers also have a normal scope.
var allAutoscalers = scope{gvk: autoscalerKind, all: true}

// Autoscalers is the index of the objects that HorizontalPodAutoscalers scale (MR-20, MR-21). From the first call of
// Ready on, all autoscalers are watched, but only their targets are stored.
//
// Invariant: an object that any reported autoscaler names counts as scaled, and so does an object whose last
// autoscaler was deleted less than autoscalerGrace ago. Autoscalers that were deleted before the first list of this
// process were not reported: see Inherits.
type Autoscalers struct {
	// watches also has the lock of the fields below.
	watches *Watches
	used    sync.Once

	// since is the time of the first complete list of autoscalers; zero before.
	since    time.Time
	targetOf map[types.UID]objects.ID
	count    map[objects.ID]int
	// leaving are the objects whose last autoscaler was deleted, until they no longer count as scaled.
	leaving map[objects.ID]*time.Timer
}

func newAutoscalers(w *Watches) *Autoscalers {
	return &Autoscalers{watches: w, targetOf: map[types.UID]objects.ID{},
		count: map[objects.ID]int{}, leaving: map[objects.ID]*time.Timer{}}
}

// Ready waits until all autoscalers are known, or returns the reason why they are not.
func (a *Autoscalers) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, autoscalersWithin)
	defer cancel()
	if err := a.ready(ctx); err != nil {
		return fmt.Errorf("failed to compute all HPA target ref object keys: failed to list all HPAs: %w", err)
	}
	return nil
}

func (a *Autoscalers) ready(ctx context.Context) error {
	served, err := a.watches.client.mappings.of(ctx, autoscalerKind)
	if apimeta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.watches.disabled {
		store := &store{watches: a.watches, scope: allAutoscalers, active: newActiveWatch().follows(func() {})}
		_, err := store.list(ctx, a.watches.requestsFor(allAutoscalers, served))
		return err
	}
	return a.watches.use(allAutoscalers, &a.used).await(ctx)
}

// Scales reports whether the object with one of the keys counts as scaled by an autoscaler.
func (a *Autoscalers) Scales(keys []objects.ID) bool {
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	for _, key := range keys {
		if a.count[key] > 0 || a.leaving[key] != nil {
			return true
		}
	}
	return false
}

// listed records a complete list of autoscalers.
func (a *Autoscalers) listed(targets map[types.UID]objects.ID) {
	for uid, target := range targets {
		a.set(uid, target)
	}
	a.watches.mu.Lock()
	var gone []types.UID
	for uid := range a.targetOf {
		if _, found := targets[uid]; !found {
			gone = append(gone, uid)
		}
	}
	a.watches.mu.Unlock()
	for _, uid := range gone {
		a.set(uid, objects.ID{})
	}
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
}

// target returns the object that an autoscaler scales. It is empty for a malformed autoscaler, which must not block
// the other objects (MRB-12).
func (a *Autoscalers) target(object any) objects.ID {
	autoscaler, ok := object.(*unstructured.Unstructured)
	if !ok {
		return objects.ID{}
	}
	target, err := targetOfAutoscaler(autoscaler)
	if err != nil {
		a.watches.log.Info("Ignoring a HorizontalPodAutoscaler", "object", plan.NameOf(autoscaler), "reason", err.Error())
		return objects.ID{}
	}
	return target
}

// set records the target of an autoscaler; an empty key removes it. A target is checked again when it gains its first
// autoscaler, and when the grace after its last one is over, because the owner of its replicas changes.
func (a *Autoscalers) set(uid types.UID, key objects.ID) {
	if a.record(uid, key) {
		a.recheck(key)
	}
}

// record is set without the check; it reports whether the target gained its first autoscaler.
func (a *Autoscalers) record(uid types.UID, key objects.ID) (gained bool) {
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	before, had := a.targetOf[uid]
	if had && before == key {
		return false
	}
	if key != (objects.ID{}) {
		a.targetOf[uid] = key
		if a.count[key]++; a.count[key] == 1 {
			timer := a.leaving[key]
			gained = timer == nil
			if timer != nil {
				timer.Stop()
				delete(a.leaving, key)
			}
		}
	} else {
		delete(a.targetOf, uid)
	}
	if had {
		if a.count[before]--; a.count[before] == 0 {
			delete(a.count, before)
			a.leaveLocked(before, autoscalerGrace)
		}
	}
	return gained
}

// leaveLocked starts the grace of an object without autoscalers.
func (a *Autoscalers) leaveLocked(key objects.ID, grace time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(grace, func() {
		a.watches.mu.Lock()
		over := a.leaving[key] == timer
		if over {
			delete(a.leaving, key)
		}
		a.watches.mu.Unlock()
		if over {
			a.recheck(key)
		}
	})
	a.leaving[key] = timer
}

// recheck marks the workload as out of sync, under each equivalent kind that its manifest may have.
func (a *Autoscalers) recheck(key objects.ID) {
	for _, key := range plan.NewEquivalences(nil).Keys(key) {
		a.watches.tracker.MarkOutOfSync(key)
	}
}

func targetOfAutoscaler(autoscaler *unstructured.Unstructured) (objects.ID, error) {
	apiVersion, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return objects.ID{}, fmt.Errorf("invalid API version in scaleTargetRef: %w", err)
	}
	return objects.ID{Group: gv.Group, Kind: kind, Namespace: autoscaler.GetNamespace(), Name: name}, nil
}
