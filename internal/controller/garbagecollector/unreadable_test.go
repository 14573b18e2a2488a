package garbagecollector

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var managedResources = resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")

// holderWith is an object of a tenant's CRD with any spec; it refers to kept by annotation.
func holderWith(kind schema.GroupVersionKind, namespace, name string, spec any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(annotated(references.ConfigMap, "kept"))
	return o
}

// T3-8, GC-6: a tenant's CRD may have any content. An object that cannot be read counts by its annotations and protects its own namespace; the
// rest of the cluster is collected, and the log names the object and its field, and nothing of its content.
func TestUnreadableHolder(t *testing.T) {
	prometheus1 := references.PrometheusKind.WithVersion("v1")
	containers := func(with map[string]any) any {
		with["name"] = "s3cr3t"
		return map[string]any{"containers": []any{with}}
	}
	for name, tc := range map[string]struct {
		kind  schema.GroupVersionKind
		spec  any
		field string
	}{
		"spec is text":                      {prometheus1, "s3cr3t", "spec"},
		"containers is text":                {prometheus1, map[string]any{"containers": "s3cr3t"}, "spec.containers"},
		"a quantity is no number":           {prometheus1, containers(map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "s3cr3t"}}}), "spec.containers"},
		"a value is a number":               {prometheus1, containers(map[string]any{"env": []any{map[string]any{"name": "A", "value": int64(1)}}}), "spec.containers"},
		"initContainers is an object":       {prometheus1, map[string]any{"initContainers": map[string]any{}}, "spec.initContainers"},
		"volumes has text":                  {prometheus1, map[string]any{"volumes": []any{"s3cr3t"}}, "spec.volumes"},
		"remoteWrite is a number":           {prometheus1, map[string]any{"remoteWrite": int64(1)}, "spec.remoteWrite"},
		"secretRefs of a ManagedResource":   {managedResources, map[string]any{"secretRefs": "s3cr3t"}, "spec.secretRefs"},
		"a name of one of them is a number": {managedResources, map[string]any{"secretRefs": []any{map[string]any{"name": int64(1)}}}, "spec.secretRefs"},
	} {
		t.Run("T3-8/"+name, func(t *testing.T) {
			f := newFixture(t, holderWith(tc.kind, "tenant", "p", tc.spec),
				garbage(references.ConfigMap, "kube-system", "old", time.Hour), garbage(references.Secret, "other", "kept", time.Hour),
				garbage(references.ConfigMap, "tenant", "kept", time.Hour), garbage(references.Secret, "tenant", "unknown", time.Hour))
			var output strings.Builder
			var writing sync.Mutex // Deletions are logged several at once.
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) {
				writing.Lock()
				defer writing.Unlock()
				output.WriteString(args)
			}, funcr.Options{}))
			f.mark()
			must.Succeed(t, expect.ErrorOf(f.Reconcile(ctx, reconcile.Request{})))
			f.leaves("the namespace of what cannot be read", "tenant/kept", "tenant/unknown")
			if want := fmt.Sprintf("%s tenant/p (%s)", tc.kind.Kind, tc.field); !strings.Contains(output.String(), want) || strings.Contains(output.String(), "s3cr3t") {
				t.Errorf("logged %s, want %s", output.String(), want)
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(f.Metrics.unread)
			if families, err := registry.Gather(); err != nil || families[0].Metric[0].Gauge.GetValue() != 1 {
				t.Errorf("the metric tells of %v, %v", families, err)
			}
		})
		t.Run("T3-8/scanPodSpecs: false, "+name, func(t *testing.T) {
			f := newFixture(t, holderWith(tc.kind, "tenant", "p", tc.spec), garbage(references.ConfigMap, "tenant", "kept", time.Hour), garbage(references.Secret, "tenant", "unknown", time.Hour))
			f.Config.ScanPodSpecs = new(bool)
			f.collect()
			f.leaves("annotations", "tenant/kept")
		})
	}
}

// T3-8: whatever an object of a tenant's CRD has, the run ends without an error, what the object refers to by annotation stays, and what is in
// other namespaces is collected.
func TestPropertyForeignHolders(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(rt *rapid.T) any {
			switch n := rapid.IntRange(0, 5).Draw(rt, "type"); {
			case n == 0:
				return rapid.Int64().Draw(rt, "number")
			case n == 1:
				return rapid.Bool().Draw(rt, "bool")
			case n == 2 || depth == 0:
				return rapid.SampledFrom([]string{"", "kept", "x"}).Draw(rt, "text")
			case n == 3:
				return append([]any{}, rapid.SliceOfN(value(depth-1), 0, 2).Draw(rt, "list")...)
			}
			keys := rapid.SampledFrom([]string{"containers", "initContainers", "volumes", "remoteWrite", "secretRefs", "name", "env", "envFrom", "secretRef", "secret", "secretName", "basicAuth"})
			object := map[string]any{}
			for k, v := range rapid.MapOfN(keys, value(depth-1), 0, 3).Draw(rt, "object") {
				object[k] = v
			}
			return object
		})
	}
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom([]schema.GroupVersionKind{references.PrometheusKind.WithVersion("v1"), managedResources}).Draw(rt, "kind")
		holder := holderWith(kind, "tenant", "p", value(5).Draw(rt, "spec"))
		must.Succeed(rt, expect.ErrorOf(json.Marshal(holder)))
		f := newFixture(t, holder, garbage(references.ConfigMap, "tenant", "kept", time.Hour), garbage(references.Secret, "elsewhere", "kept", time.Hour))
		f.mark()
		must.Succeed(rt, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{})))
		expect.Equal(rt, fmt.Sprint(f.left()), "[tenant/kept]", "left")
	})
}

// GC-10: a deletion that is refused again and again has a back-off of its own: what it costs to check all holders is not repeated for it at
// the pace of other failures, and it stops no other.
func TestRefusedDeletion(t *testing.T) {
	f := newFixture(t, garbage(references.ConfigMap, "tenant", "refused", time.Hour))
	refused := func(object client.Object) error {
		return expect.Holds(object.GetName() != "refused", "admission webhook denied the request: %s", strings.Repeat("x", 1<<20))
	}
	f.mark()
	f.onDelete = refused
	queue := f.retries
	lists := func(long time.Duration) map[string]int {
		t.Helper()
		f.lists = map[string]int{}
		for end := f.clock.Now().Add(long); f.clock.Now().Before(end); {
			_, err := f.Reconcile(t.Context(), reconcile.Request{})
			if err == nil || !strings.HasPrefix(err.Error(), "Could not delete all unused resources: 1 error occurred: ConfigMap tenant/refused: ") || len(err.Error()) > 2*maxText {
				t.Fatalf("GC-10: got an error of %d bytes", len(fmt.Sprint(err)))
			}
			f.clock.SetTime(f.clock.Now().Add(queue.When(reconcile.Request{})))
		}
		return f.lists
	}
	got := lists(time.Hour)
	expect.True(t, got["Pod"] <= 4 && got["Secret"] <= 3, "the first hour has cost %v", got)
	if got := lists(100 * time.Hour); got["Pod"] > 2*8 { // After 1, 2, 4, 8, 16, 24, 24 and 24 hours.
		t.Errorf("the next 100 hours have cost %v", got)
	}
	must.Succeed(t, f.target.Create(t.Context(), garbage(references.Secret, "tenant", "other", time.Hour)))
	f.onDelete = nil
	for range 2 {
		expect.Error(t, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{})), "nobody tells of what is left")
		f.clock.SetTime(f.clock.Now().Add(time.Hour))
	}
	f.leaves("GC-10, another one", "tenant/refused")
	f.clock.SetTime(f.clock.Now().Add(25 * time.Hour))
	f.run()
	f.leaves("it is not refused any more")
	expect.Equal(t, len(f.refused), 0, "refusals are remembered")
}

// GC-2, COM-4: an incomplete view is repeated as before, also after a refusal.
func TestRetriesOfRuns(t *testing.T) {
	f := newFixture(t, garbage(references.ConfigMap, "a", "x", time.Hour))
	f.mark()
	f.onDelete = func(client.Object) error { return fmt.Errorf("no") }
	wait := func(want time.Duration) {
		t.Helper()
		if _, err := f.Reconcile(t.Context(), reconcile.Request{}); err == nil {
			t.Fatal("no error")
		}
		expect.Equal(t, f.retries.When(reconcile.Request{}), want, "the next run is in")
	}
	wait(retryDeletions)
	f.onList = func(kind string, _ int) error {
		return expect.Holds(kind != "Pod", "no")
	}
	wait(5 * time.Millisecond)
	wait(10 * time.Millisecond)
	f.onList = nil
	wait(time.Hour) // It has failed twice.
}
