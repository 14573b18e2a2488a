package target

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/reflector"
)

var autoscalerKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}

const (
	// autoscalersWithin limits how long the list of autoscalers may take before a caller that needs it fails.
	autoscalersWithin = 15 * time.Second
	// autoscalerGrace is the time for which an object counts as scaled after its last autoscaler is gone: an
	// autoscaler that is deleted and created again, to change an immutable field or by a tool that replaces it, must
	// not cost the replicas that it had asked for.
	autoscalerGrace = time.Minute
	// refusalCounts is the time for which a failed list of autoscalers fails for all callers: each of them would
	// request it, and wait for it, anew.
	refusalCounts = 5 * time.Second
)

// Autoscalers knows which objects a HorizontalPodAutoscaler scales (MR-20, MR-21). From the first call of Ready on it
// watches all autoscalers, regardless of who manages them, and keeps their targets only.
//
// Invariant: an object that any autoscaler on record names is scaled, and so is an object whose last autoscaler went
// less than autoscalerGrace ago. Ready reports whether the record is complete. Autoscalers that went before the first
// list of this process are not on record: see Inherits. A list changes nothing if the watch reported an event since it
// began: it is not known which of the two is later.
type Autoscalers struct {
	watches *Watches
	active  *activeWatch

	// listed is the start of the last list that a call of Ready requested; it is changed during lists only.
	listed time.Time

	// telling is held while an event or a list is recorded; reported counts the events.
	telling  sync.Mutex
	reported uint64

	mu      sync.Mutex
	started bool
	// refused is the error of the last caller that did not get the autoscalers, and its time.
	refused struct {
		err error
		at  time.Time
	}
	// since is the time at which all of them were known first; zero before.
	since    time.Time
	targetOf map[types.UID]objects.ID
	count    map[objects.ID]int
	// leaving are the objects whose last autoscaler went, until they no longer count as scaled.
	leaving map[objects.ID]*time.Timer
}

func newAutoscalers(w *Watches) *Autoscalers {
	return &Autoscalers{watches: w, active: newActiveWatch(), targetOf: map[types.UID]objects.ID{},
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
	resource := a.watches.client.dynamic.Resource(served.resource)
	if a.watches.disabled {
		_, err := a.list(ctx, pagesOf(a.watches.metrics, resource.List), func() bool { return true })
		return err
	}
	a.start(resource)
	return a.known(ctx, resource)
}

// known waits until the watch covers the autoscalers, as long as the first list is under way. If that has failed, or
// the watch has ended, it asks the API server: the reflector may pause for long before its next attempt.
func (a *Autoscalers) known(ctx context.Context, resource dynamic.ResourceInterface) error {
	for {
		if a.active.await(ctx) {
			return nil
		}
		if err := a.asked(ctx, resource); !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// asked lists the autoscalers from the API server, unless another caller did so a moment ago.
func (a *Autoscalers) asked(ctx context.Context, resource dynamic.ResourceInterface) error {
	began := time.Now()
	if err := a.refusal(began); err != nil {
		return err
	}
	return a.active.list(ctx, func() error {
		if a.listed.After(began) {
			return nil // Another caller has asked since.
		}
		if err := a.refusal(began); err != nil {
			return err
		}
		now := time.Now()
		_, err := a.list(ctx, pagesOf(a.watches.metrics, resource.List), func() bool { return true })
		switch {
		case err == nil:
			a.listed = now
		case errors.Is(err, errOvertaken):
		case ctx.Err() == nil || time.Since(now) >= refusalCounts:
			a.refuse(err) // A caller whose time ends just after its request proves nothing about the API server.
		}
		return err
	})
}

// refuse records the error of a caller that does not get the autoscalers.
func (a *Autoscalers) refuse(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused.err, a.refused.at = err, time.Now()
}

// refusal returns the error that another caller that needed the autoscalers had a moment ago.
func (a *Autoscalers) refusal(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.refused.at) < refusalCounts {
		return a.refused.err
	}
	return nil
}

// Scales reports whether an autoscaler has the replicas of the object under one of the keys.
func (a *Autoscalers) Scales(keys []objects.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		if a.count[key] > 0 || a.leaving[key] != nil {
			return true
		}
	}
	return false
}

func (a *Autoscalers) start(resource dynamic.ResourceInterface) {
	a.watches.mu.Lock()
	ctx := a.watches.ctx
	a.watches.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started || ctx == nil {
		return
	}
	a.started = true
	a.watches.metrics.watching.Inc()
	go a.run(ctx, resource)
}

// run follows the autoscalers until the context ends, and begins anew whenever it is asked to.
func (a *Autoscalers) run(ctx context.Context, resource dynamic.ResourceInterface) {
	log := a.watches.log.WithValues("groupVersionKind", autoscalerKind.String())
	for ctx.Err() == nil {
		following, cancel := context.WithCancel(ctx)
		sink := &autoscalerSink{a, a.active.follows(cancel)}
		follower := cache.NewReflectorWithOptions(sink.requests(resource), nil, sink,
			cache.ReflectorOptions{
				Name: "autoscalers", MinWatchTimeout: minWatchTimeout, Logger: &log, Backoff: reflector.Backoff(),
				TypeDescription: autoscalerKind.String(),
			})
		follower.RunWithContext(following)
		sink.active.end()
		cancel()
	}
}

// autoscalerSink records the results of lists and a watch of autoscalers, as long as its session is current.
type autoscalerSink struct {
	*Autoscalers
	active watchSession
}

func (s *autoscalerSink) requests(resource dynamic.ResourceInterface) cache.ListerWatcher {
	return reflector.Requests{
		List: func(ctx context.Context) (string, error) {
			version := ""
			// A session that was given up ends before the next one begins: its reports are older.
			err := s.active.list(ctx, func() (err error) {
				version, err = s.list(ctx, pagesOf(s.watches.metrics, resource.List), s.active.isCurrent)
				return err
			})
			if err == nil && !s.active.listed(version) {
				err = errRenewed
			}
			return version, err
		},
		Watch: func(ctx context.Context, options *metav1.ListOptions) (watch.Interface, error) {
			s.watches.metrics.count("watch")
			return resource.Watch(ctx, *options)
		},
		Limit:  requestTimeout,
		Failed: s.failed,
		Resumed: func(context.Context) (ended func(bool)) {
			_, ended = s.active.resumed()
			return ended
		},
	}.ListWatch()
}

func (s *autoscalerSink) failed(_ string, err error) {
	s.active.lost()
	if unserved(err) {
		s.watches.client.mappings.forgetKind(autoscalerKind.GroupKind())
	}
}

// errOvertaken ends a list of autoscalers during which the watch went on.
var errOvertaken = errors.New("a watch has reported newer data")

// list reports all autoscalers, as long as heeded returns true.
func (a *Autoscalers) list(ctx context.Context, page pageFunc, heeded func() bool) (string, error) {
	targets := map[types.UID]objects.ID{}
	var reported uint64
	version, err := listPages(ctx, metav1.ListOptions{}, page, paging{
		start: func() {
			clear(targets)
			a.telling.Lock()
			defer a.telling.Unlock()
			reported = a.reported
		},
		begin: func(string) error {
			if !heeded() {
				return errRenewed
			}
			return nil
		},
		each: func(object runtime.Object) error {
			autoscaler, ok := object.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("unexpected object %T", object)
			}
			targets[autoscaler.GetUID()] = a.target(autoscaler)
			return nil
		},
	})
	if err != nil {
		return version, err
	}
	return version, a.listedAll(targets, reported)
}

// listedAll records a complete list; reported is the count of events when the list began.
func (a *Autoscalers) listedAll(targets map[types.UID]objects.ID, reported uint64) error {
	a.telling.Lock()
	defer a.telling.Unlock()
	if a.reported != reported {
		return errOvertaken
	}
	for uid, target := range targets {
		a.set(uid, target)
	}
	a.mu.Lock()
	var gone []types.UID
	for uid := range a.targetOf {
		if _, found := targets[uid]; !found {
			gone = append(gone, uid)
		}
	}
	a.mu.Unlock()
	for _, uid := range gone {
		a.set(uid, objects.ID{})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s *autoscalerSink) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *autoscalerSink) Update(object any) error {
	autoscaler, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	s.apply(autoscaler.GetUID(), s.target(autoscaler))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *autoscalerSink) Delete(object any) error {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	s.apply(accessor.GetUID(), objects.ID{})
	return nil
}

// apply records an event, if the session of the sink is current.
func (s *autoscalerSink) apply(uid types.UID, target objects.ID) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if s.active.isCurrent() {
		s.reported++
		s.set(uid, target)
	}
}

// Replace implements cache.ReflectorStore. The list was reported page by page before.
func (s *autoscalerSink) Replace([]any, string) error { return nil }

// Resync implements cache.ReflectorStore.
func (s *autoscalerSink) Resync() error { return nil }

// target returns the object that an autoscaler scales; empty for a malformed one, which must not keep everything else
// from being applied (MRB-12).
func (a *Autoscalers) target(autoscaler *unstructured.Unstructured) objects.ID {
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
	a.mu.Lock()
	defer a.mu.Unlock()
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
		a.mu.Lock()
		over := a.leaving[key] == timer
		if over {
			delete(a.leaving, key)
		}
		a.mu.Unlock()
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
