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
	// autoscalersWithin limits how long the list of autoscalers may take before a caller that needs it fails.
	autoscalersWithin = 15 * time.Second
	// autoscalerGrace is the time for which an object counts as scaled after its last autoscaler is gone: an
	// autoscaler that is deleted and created again, to change an immutable field or by a tool that replaces it, must
	// not cost the replicas that it had asked for.
	autoscalerGrace = time.Minute
)

// allAutoscalers is the scope of all autoscalers, regardless of who manages them. The tracker gets no report of it:
// managed autoscalers have another scope.
var allAutoscalers = scope{gvk: autoscalerKind, all: true}

// Autoscalers knows which objects a HorizontalPodAutoscaler scales (MR-20, MR-21). From the first call of Ready on all
// autoscalers are watched, and only their targets are kept.
//
// Invariant: an object that any reported autoscaler names is scaled, and so is an object whose last autoscaler went
// less than autoscalerGrace ago. Autoscalers that went before the first list of this process were not reported: see
// Inherits.
type Autoscalers struct {
	// watches also has the lock of the fields below.
	watches *Watches
	used    sync.Once

	// since is the time at which all of them were known first; zero before.
	since    time.Time
	targetOf map[types.UID]objects.ID
	count    map[objects.ID]int
	// leaving are the objects whose last autoscaler went, until they no longer count as scaled.
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

// Scales reports whether an autoscaler has the replicas of the object under one of the keys.
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

// listed records a complete list.
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

// target returns the object that an autoscaler scales; empty for a malformed one, which must not keep everything else
// from being applied (MRB-12).
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

// set records the target of an autoscaler, none for an empty key. A target is checked again when it gains its first
// autoscaler, and when the grace after its last one is over, since its replicas change hands.
func (a *Autoscalers) set(uid types.UID, key objects.ID) {
	if a.record(uid, key) {
		a.recheck(key)
	}
}

// record reports whether the target gained its first autoscaler.
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

// leaveLocked begins the grace of an object without autoscalers.
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
