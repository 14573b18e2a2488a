package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
)

// fleet is a resource-manager of many targets, of which one is honest.
type fleet struct {
	process      *harness.Process
	seed, honest *harness.Simulated
	next         atomic.Int64
}

// Namespaces of the targets, and the group of a kind that only the hostile target serves.
const (
	honestTarget  = "shoot--honest"
	hostileTarget = "shoot--hostile"
	ownGroup      = "own.example.com"
)

// manyTargets starts a seed, the honest target, and a resource-manager of all namespaces with a label.
func (s *stage) manyTargets() (*fleet, error) {
	f := &fleet{}
	kinds := append(fake.BuiltIn(), fake.CustomKind("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true),
		fake.BuiltInKind("coordination.k8s.io", "v1", "Lease", "leases", true))
	var err error
	if f.seed, err = harness.StartSimulated("seed", filepath.Join(s.dir, "seed"), kinds, "default"); err != nil {
		return nil, err
	}
	s.close = append(s.close, f.seed.Stop)
	if f.honest, err = harness.StartSimulated("honest", filepath.Join(s.dir, "honest"), fake.BuiltIn(), "default"); err != nil {
		return nil, err
	}
	s.close = append(s.close, f.honest.Stop)
	if err := f.target(honestTarget, f.honest); err != nil {
		return nil, err
	}
	if f.process, err = harness.Run(harness.ProcessOptions{
		Binary: filepath.Join(s.bin, "resource-manager"), Dir: filepath.Join(s.dir, "process"), Source: f.seed.Cluster, TargetKubeconfig: "none", AsAdmin: true,
		Config: map[string]any{
			"controllers":            map[string]any{"clusterID": "hostile"},
			"targetClientConnection": map[string]any{"kubeconfig": ""},
			"targets": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"target": "true"}}, "kubeconfig": map[string]any{"secretName": "access"},
			},
		},
	}); err != nil {
		return nil, err
	}
	s.close = append(s.close, f.process.Kill)
	if err := f.process.AwaitReady(s.ctx); err != nil {
		return nil, err
	}
	// The process takes a Lease that it has seen free for a while.
	if err := harness.Poll(s.ctx, time.Minute, func() error { return f.applied(s.ctx, 0) }); err != nil {
		return nil, err
	}
	for range 10 { // The code for all of it is in memory then.
		if err := f.applied(s.ctx, 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// target makes a namespace a target, with the kubeconfig of a cluster.
func (f *fleet) target(namespace string, simulated *harness.Simulated) error {
	content, err := os.ReadFile(simulated.Kubeconfig)
	if err != nil {
		return err
	}
	return errors.Join(f.label(namespace), f.access(namespace, string(content)))
}

func (f *fleet) label(namespace string) error {
	return f.seed.Put("namespaces", fields{"apiVersion": "v1", "kind": "Namespace", "metadata": fields{"name": namespace, "labels": fields{"target": "true"}}})
}

func (f *fleet) access(namespace, content string) error {
	return f.seed.Put("secrets", fields{
		"apiVersion": "v1", "kind": "Secret", "metadata": fields{"namespace": namespace, "name": "access"}, "data": fields{"kubeconfig": base64Of(content)},
	})
}

// managed creates a ManagedResource with a manifest.
func (f *fleet) managed(namespace, name, manifest string) error {
	meta := fields{"namespace": namespace, "name": name}
	return errors.Join(
		f.seed.Put("secrets", fields{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": fields{"data.yaml": base64Of(manifest)}}),
		f.seed.Put("managedresources", fields{
			"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "metadata": meta,
			"spec": fields{"class": "resources", "secretRefs": []any{fields{"name": name}}},
		}))
}

// applied creates a ManagedResource with one object for the honest target, and waits for the object.
func (f *fleet) applied(ctx context.Context, _ int) error {
	name := fmt.Sprintf("honest-%d", f.next.Add(1))
	if err := f.managed(honestTarget, name, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: default}\n"); err != nil {
		return err
	}
	return harness.Poll(ctx, patience, func() error {
		if f.honest.Any("configmaps", func(o fake.Object) bool { return fake.Text(o, "metadata", "name") == name }) {
			return nil
		}
		return errors.New("the object is not applied")
	})
}

func (f *fleet) applying(ctx context.Context, t *tally) {
	t.paced(ctx, 200*time.Millisecond, f.applied)
}

// kubeconfigs: a kubeconfig that expands costs its size, and no other target notices.
func kubeconfigs(s *stage) error {
	f, err := s.manyTargets()
	if err != nil {
		return err
	}
	const size = 80 << 10
	if err := errors.Join(f.label(hostileTarget), f.access(hostileTarget, kubeconfig(size))); err != nil {
		return err
	}
	err = s.phases(f.process, f.applying, func(ctx context.Context, t *tally) {
		t.paced(ctx, 200*time.Millisecond, func(_ context.Context, i int) error {
			return f.access(hostileTarget, fmt.Sprintf("# %d\n%s", i, aliasBomb(size)))
		})
	}, 2*time.Second, 4*time.Second)
	s.goal("honest objects not applied", float64(s.during.honest.refused+s.after.honest.refused), 0, "")
	s.goal("memory with such kubeconfigs, more than before", s.during.peak-s.before.peak, 16, " MiB")
	return err
}

// expanding: an answer of 4 MiB that would expand to a gigabyte costs what its size allows, and no other target notices.
func expanding(s *stage) error {
	f, err := s.manyTargets()
	if err != nil {
		return err
	}
	hostile, err := harness.StartSimulated("hostile", filepath.Join(s.dir, "hostile"), append(fake.BuiltIn(), fake.CustomKind(ownGroup, "v1", "X", "xs", true)), "default")
	if err != nil {
		return err
	}
	s.close = append(s.close, hostile.Stop)
	const size = 4 << 20
	empty := strings.TrimSuffix(strings.Repeat("{},", size/3), ",")
	var sent atomic.Int64
	hostile.Answer = func(w http.ResponseWriter, request *http.Request) bool {
		list := strings.HasSuffix(request.URL.Path, "/xs") && request.Method == http.MethodGet && request.URL.Query().Get("watch") == ""
		if !list && request.URL.Path != "/apis/"+ownGroup+"/v2" {
			return false
		}
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")
		begin := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[`
		if !list {
			begin = `{"apiVersion":"v1","kind":"APIResourceList","groupVersion":"` + ownGroup + `/v2","resources":[`
		}
		_, _ = w.Write([]byte(begin + empty + "]}"))
		return true
	}
	const first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: default}\n"
	if err := errors.Join(f.target(hostileTarget, hostile), f.managed(hostileTarget, "first", first)); err != nil {
		return err
	}
	if err := harness.Poll(s.ctx, time.Minute, func() error { // The process has its Lease then.
		if hostile.Any("configmaps", func(o fake.Object) bool { return fake.Text(o, "metadata", "name") == "first" }) {
			return nil
		}
		return errors.New("the hostile target is not managed")
	}); err != nil {
		return err
	}
	var began atomic.Bool
	err = s.phases(f.process, f.applying, func(ctx context.Context, t *tally) {
		if began.Swap(true) {
			return
		}
		t.ask(ctx, 0, func(context.Context, int) error {
			return errors.Join(
				f.managed(hostileTarget, "lists", "apiVersion: "+ownGroup+"/v1\nkind: X\nmetadata: {name: a, namespace: default}\n"),
				f.managed(hostileTarget, "discovery", "apiVersion: "+ownGroup+"/v2\nkind: X\nmetadata: {name: b, namespace: default}\n"))
		})
		<-ctx.Done()
	}, 2*time.Second, 6*time.Second)
	s.goal("honest objects not applied", float64(s.during.honest.refused+s.after.honest.refused), 0, "")
	s.goal("hostile answers, none sent", map[bool]float64{true: 0, false: 1}[sent.Load() > 0], 0, "")
	s.goal("memory with such answers, more than before", s.during.peak-s.before.peak, 8*size/mebi+8, " MiB")
	return err
}
