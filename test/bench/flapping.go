package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/harness"
)

// flapping measures what an object costs whose readiness changes ten times a second: status writes of its
// ManagedResource, and how late its first change and its last state are told.
func flapping(ctx context.Context, b *bench) error {
	const lasts, pause = 20 * time.Second, 100 * time.Millisecond
	p, err := b.startReady(ctx, nil)
	if err != nil {
		return err
	}
	defer p.Stop()
	manifest := []byte("apiVersion: v1\nkind: Service\nmetadata: {name: flapping, namespace: default}\n" +
		"spec: {type: LoadBalancer, selector: {a: b}, ports: [{port: 80}]}\n")
	if err := b.create(ctx, b.SeedClient, "default", "mr", map[string][]byte{"data.yaml": manifest}); err != nil {
		return err
	}
	ready := func(is bool) error {
		ingress := []any{}
		if is {
			ingress = []any{map[string]any{"ip": "1.2.3.4"}}
		}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "flapping"}}
		return b.ShootClient.Status().Patch(ctx, service, harness.MergePatch(map[string]any{
			"status": map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}}))
	}
	told := func(want string) (time.Duration, error) {
		began := time.Now()
		err := harness.Poll(ctx, time.Minute, func() error {
			mr := &resourcesv1alpha1.ManagedResource{}
			if err := b.SeedClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: "mr"}, mr); err != nil {
				return err
			}
			if is, _ := harness.Condition(mr, resourcesv1alpha1.ResourcesHealthy); !strings.HasPrefix(is, want) {
				return fmt.Errorf("ResourcesHealthy is %s", is)
			}
			return nil
		})
		return time.Since(began), err
	}
	if _, err := told("False"); err != nil {
		return err
	}
	if err := ready(true); err != nil {
		return err
	}
	if _, err := told("True"); err != nil {
		return err
	}
	if err := settle(ctx, p); err != nil {
		return err
	}

	watching, err := client.NewWithWatch(b.SeedREST, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		return err
	}
	w, err := watching.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace("default"))
	if err != nil {
		return err
	}
	writes := make(chan int)
	go func() {
		n := -1 // The watch begins with the ManagedResource as it is.
		for range w.ResultChan() {
			n++
		}
		writes <- n
	}()
	if err := ready(false); err != nil {
		return err
	}
	first, err := told("False")
	if err != nil {
		return err
	}
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	changes := 1
	for end := time.Now().Add(lasts); time.Now().Before(end); changes++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := ready(changes%2 == 1); err != nil {
			return err
		}
	}
	if err := ready(true); err != nil {
		return err
	}
	last, err := told("True")
	if err != nil {
		return err
	}
	w.Stop()
	n := float64(<-writes)
	b.add("status writes for an object whose readiness changes 10 times a second", n/lasts.Seconds(), "/s",
		fmt.Sprintf("%.0f in %s, %d changes", n, lasts, changes), "target ≤ 1")
	b.add("… its first change told after", milliseconds(first), "ms", "", "")
	b.add("… its last state told after", milliseconds(last), "ms", "", "target ≤ 1000")
	return nil
}
