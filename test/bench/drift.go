package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/env/harness"
)

const drifting = 500

type driftKind struct {
	name     string
	resource schema.GroupVersionResource
	manifest func(i int) string
	edit     string
	repaired func(*unstructured.Unstructured) bool
}

var driftKinds = []driftKind{
	{
		"ConfigMap (no generation)", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		func(i int) string {
			return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: drift-%d, namespace: default}\ndata: {key: value}\n", i)
		},
		`{"data":{"key":"changed"}}`,
		func(o *unstructured.Unstructured) bool {
			value, _, _ := unstructured.NestedString(o.Object, "data", "key")
			return value == "value"
		},
	},
	{
		"Ingress (generation)", schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		func(i int) string {
			return fmt.Sprintf("---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: drift-%d, namespace: default}\nspec: {ingressClassName: value, defaultBackend: {service: {name: a, port: {number: 80}}}}\n", i)
		},
		`{"spec":{"ingressClassName":"changed"}}`,
		func(o *unstructured.Unstructured) bool {
			value, _, _ := unstructured.NestedString(o.Object, "spec", "ingressClassName")
			return value == "value"
		},
	},
}

func driftRepair(ctx context.Context, b *bench) error {
	p, err := b.startReady(ctx, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"syncPeriod": "1h"}}})
	if err != nil {
		return err
	}
	defer p.Stop()
	client, err := dynamic.NewForConfig(b.ShootREST)
	if err != nil {
		return err
	}
	for k, kind := range driftKinds {
		// Fifty ManagedResources with ten objects each.
		for m := range drifting / 10 {
			manifests := ""
			for i := range 10 {
				manifests += kind.manifest(m*10 + i)
			}
			if err := b.create(ctx, b.SeedClient, "default", fmt.Sprintf("drift-%d-%d", k, m), map[string][]byte{"data.yaml": []byte(manifests)}); err != nil {
				return err
			}
		}
		if err := b.await(ctx, (k+1)*drifting/10, harness.Settled); err != nil {
			return err
		}
		if err := settle(ctx, p); err != nil {
			return err
		}
		d := &driftBench{bench: b, kind: kind, resource: client.Resource(kind.resource).Namespace("default")}
		if err := d.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

type driftBench struct {
	*bench
	kind     driftKind
	resource dynamic.ResourceInterface
}

func (d *driftBench) run(ctx context.Context) error {
	for _, action := range []struct {
		name      string
		do        func(context.Context, int) (types.UID, error)
		reference string
	}{
		{"edited", d.edit, "the reference: p50 21 s, p95 54 s; target p95 ≤ 250"},
		{"deleted", d.delete, "the reference: p50 14"},
	} {
		var times []time.Duration
		for i := range 40 {
			took, err := d.one(ctx, i, action.do)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		d.add(fmt.Sprintf("%s %s, repaired, p50", d.kind.name, action.name), milliseconds(quantile(times, 0.5)), "ms",
			fmt.Sprintf("p95 %.1f ms (n=%d)", milliseconds(quantile(times, 0.95)), len(times)), action.reference)

		started := time.Now()
		uids := make([]types.UID, drifting)
		if err := parallel(drifting, writer, func(i int) (err error) { uids[i], err = action.do(ctx, i); return err }); err != nil {
			return err
		}
		changed := time.Since(started)
		if err := parallel(drifting, writer, func(i int) error { return d.awaitRepair(ctx, i, uids[i]) }); err != nil {
			return err
		}
		d.add(fmt.Sprintf("… %d at once, all repaired", drifting), milliseconds(time.Since(started)), "ms",
			fmt.Sprintf("the changes alone took %.0f ms", milliseconds(changed)), "")
	}
	return nil
}

func (d *driftBench) one(ctx context.Context, i int, do func(context.Context, int) (types.UID, error)) (time.Duration, error) {
	started := time.Now()
	uid, err := do(ctx, i)
	if err != nil {
		return 0, err
	}
	err = d.awaitRepair(ctx, i, uid)
	return time.Since(started), err
}

func name(i int) string { return fmt.Sprintf("drift-%d", i) }

// edit changes an object; the empty UID says that the same object is expected again.
func (d *driftBench) edit(ctx context.Context, i int) (types.UID, error) {
	_, err := d.resource.Patch(ctx, name(i), types.MergePatchType, []byte(d.kind.edit), metav1.PatchOptions{})
	return "", err
}

func (d *driftBench) delete(ctx context.Context, i int) (types.UID, error) {
	object, err := d.resource.Get(ctx, name(i), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return object.GetUID(), d.resource.Delete(ctx, name(i), metav1.DeleteOptions{})
}

func (d *driftBench) awaitRepair(ctx context.Context, i int, deleted types.UID) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		object, err := d.resource.Get(ctx, name(i), metav1.GetOptions{})
		if err == nil && object.GetUID() != deleted && d.kind.repaired(object) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not repaired: %v", name(i), err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// updates is the number of writes that a process has sent to the target.
func updates(p *harness.Process) float64 {
	_, body := p.Get(p.Metrics, "/metrics")
	total := 0.0
	for _, line := range strings.Split(body, "\n") {
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			if strings.HasPrefix(line, `espalier_target_requests_total{verb="`+verb+`"}`) {
				value, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
				total += value
			}
		}
	}
	return total
}

func decodeYAML(manifests string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(manifests, "---\n")[1:] {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}
