package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// writer is the number of clients that write the ManagedResources of a scenario.
const writer = 16

func configMaps(n int, prefix string) string {
	text := ""
	for i := range n {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s-%d\n  namespace: default\ndata: {key: value}\n", prefix, i)
	}
	return text
}

// create creates a ManagedResource with its Secret.
func (b *bench) create(ctx context.Context, namespace, name, manifests string, class *string) error {
	if err := b.SeedClient.Create(ctx, harness.Secret(namespace, name, map[string][]byte{"data.yaml": []byte(manifests)})); err != nil {
		return err
	}
	mr := harness.ManagedResource(namespace, name, name)
	mr.Spec.Class = class
	return b.SeedClient.Create(ctx, mr)
}

// parallel calls work n times, some at a time, and returns the first error.
func parallel(n, workers int, work func(int) error) error {
	var running sync.WaitGroup
	next, errs := make(chan int), make(chan error, n)
	for range workers {
		running.Go(func() {
			for i := range next {
				if err := work(i); err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
	close(errs)
	return <-errs
}

// await waits until all ManagedResources are settled. It watches, so that waiting costs the servers next to nothing.
func (b *bench) await(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	watching, err := client.NewWithWatch(b.SeedREST, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		return err
	}
	w, err := watching.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace("default"))
	if err != nil {
		return err
	}
	defer func() { w.Stop() }()
	settled := map[string]bool{}
	var last error
	for len(settled) < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d are settled: %w", len(settled), n, last)
		case event, open := <-w.ResultChan():
			if !open {
				// The server ends the watch of a client that does not keep up; a new one starts with all there is.
				if w, err = watching.Watch(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace("default")); err != nil {
					return err
				}
				continue
			}
			mr, ok := event.Object.(*resourcesv1alpha1.ManagedResource)
			if !ok {
				continue
			}
			if err := harness.Settled(mr); err != nil {
				last = fmt.Errorf("%s: %w", mr.Name, err)
				delete(settled, mr.Name)
			} else {
				settled[mr.Name] = true
			}
		}
	}
	return nil
}
