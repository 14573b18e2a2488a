package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/espalier-project/espalier/test/env/harness"
)

const (
	// drifting counts the ConfigMaps, ten for each ManagedResource.
	drifting = 500
	// drifts is the number of them that are changed one after the other.
	drifts = 40
	// syncPeriod is the shortest time in which the reference compares all objects; its default.
	syncPeriod = time.Minute
)

// driftRepair changes single objects. The edits of the reference's objects are spread over a sync period, as the time until the end of the period
// decides when it repairs them.
func driftRepair(ctx context.Context, b *bench) error {
	d, err := startDrift(ctx, b)
	if err != nil {
		return err
	}
	defer d.process.Stop()
	pace := 100 * time.Millisecond
	if b.side.reference {
		pace = syncPeriod / drifts
	}
	edited, err := d.change(ctx, drifts, 1, pace, d.edit)
	if err != nil {
		return err
	}
	deleted, err := d.change(ctx, drifts, 1, 100*time.Millisecond, d.delete)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what, target string
		took         []time.Duration
	}{{"an edited object is repaired", "≤ 250", edited}, {"a deleted object is created again", "", deleted}} {
		b.add(c.what+": median", milliseconds(quantile(c.took, 0.5)), "ms", "")
		b.add(c.what+": 95 %", milliseconds(quantile(c.took, 0.95)), "ms", c.target)
	}
	return nil
}

// burst changes all objects at once. Only ours runs it: the reference repairs edited objects at the end of the sync period, however many there are.
func burst(ctx context.Context, b *bench) error {
	d, err := startDrift(ctx, b)
	if err != nil {
		return err
	}
	defer d.process.Stop()
	for _, c := range []struct {
		what   string
		change func(context.Context, string) error
	}{{"edited", d.edit}, {"deleted", d.delete}} {
		started := time.Now()
		if _, err := d.change(ctx, drifting, writer, 0, c.change); err != nil {
			return err
		}
		b.add(fmt.Sprintf("%d objects %s at once, all repaired after", drifting, c.what), time.Since(started).Seconds(), "s", "")
	}
	return nil
}

type drift struct {
	process  *harness.Process
	resource dynamic.ResourceInterface
}

func startDrift(ctx context.Context, b *bench) (*drift, error) {
	p, err := b.startReady(ctx, manyWorkers())
	if err != nil {
		return nil, err
	}
	if _, err := b.managedResources(ctx, "drift", drifting/10, func(name string) string { return configMaps(10, name) }); err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(b.ShootREST)
	if err != nil {
		return nil, err
	}
	return &drift{p, client.Resource(resources["ConfigMap"]).Namespace("default")}, settle(ctx, p)
}

func driftName(i int) string { return fmt.Sprintf("drift-%d-%d", i%(drifting/10), i/(drifting/10)) }

// change changes n objects, some at a time and at a pace, and returns how long each is not as in its manifest, from just before the change until a
// watch reports the repaired object.
func (d *drift) change(ctx context.Context, n, workers int, pace time.Duration, do func(context.Context, string) error) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+2*syncPeriod)
	defer cancel()
	list, err := d.resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	// An API server that is busy with the writes may end a watch.
	events, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: d.resource.Watch})
	if err != nil {
		return nil, err
	}
	began := make([]time.Time, n)
	done := make(chan error, 1)
	go func() {
		done <- parallel(n, workers, func(i int) error {
			began[i] = time.Now()
			err := do(ctx, driftName(i))
			time.Sleep(pace - time.Since(began[i]))
			return err
		})
	}()
	repaired := map[string]time.Time{}
	for len(repaired) < n {
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
			done = nil
		case event, open := <-events.ResultChan():
			if !open {
				return nil, fmt.Errorf("%d of %d objects are repaired: %w", len(repaired), n, ctx.Err())
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			if value, _, _ := unstructured.NestedString(object.Object, "data", "key"); event.Type != watch.Deleted && value == "value" {
				repaired[object.GetName()] = time.Now()
			}
		}
	}
	if done != nil {
		if err := <-done; err != nil {
			return nil, err
		}
	}
	var took []time.Duration
	for i := range began {
		took = append(took, repaired[driftName(i)].Sub(began[i]))
	}
	return took, nil
}

func (d *drift) edit(ctx context.Context, name string) error {
	_, err := d.resource.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"key":"changed"}}`), metav1.PatchOptions{})
	return err
}

func (d *drift) delete(ctx context.Context, name string) error {
	return d.resource.Delete(ctx, name, metav1.DeleteOptions{})
}
