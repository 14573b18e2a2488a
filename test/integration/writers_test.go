package integration

import (
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// MR-26: somebody else writes the same object all the time; conflicts are answered by merging anew.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm", "data: {a: '0'}\n"))
	f.settled("mr")
	var running sync.WaitGroup
	running.Go(func() {
		for i := range 100 {
			object := harness.Object("v1", "ConfigMap", f.ns, "cm")
			expect.Succeed(t, f.shoot.Patch(f.ctx, object, harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"theirs": fmt.Sprint(i)}}})))
		}
	})
	for i := range 10 {
		f.secret("mr", map[string]string{"data.yaml": configMap("cm", fmt.Sprintf("data: {a: '%d'}\n", i+1))})
	}
	running.Wait()
	f.eventually(func() error {
		cm := f.get("v1", "ConfigMap", "cm")
		if got := nested(cm, "data", "a"); got != "10" || cm.GetAnnotations()["theirs"] != "99" {
			return fmt.Errorf("MR-26: data is %s, annotations %v", got, cm.GetAnnotations())
		}
		return nil
	})
	f.settled("mr")
}

// MRB-17: a deletion means the object that was read, not one that has its name by now.
func TestDeletionMeansOneObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	httpClient, err := rest.HTTPClientFor(landscape.ShootREST)
	f.must(err)
	client, err := target.NewClient(landscape.ShootREST, httpClient, target.NewMetrics(prometheus.NewRegistry()))
	f.must(err)
	f.must(f.shoot.Create(f.ctx, harness.Object("v1", "ConfigMap", f.ns, "cm")))
	read, err := client.Get(f.ctx, f.get("v1", "ConfigMap", "cm").GroupVersionKind(), f.ns, "cm")
	f.must(err)
	f.must(f.shoot.Delete(f.ctx, f.get("v1", "ConfigMap", "cm")))
	f.must(f.shoot.Create(f.ctx, harness.Object("v1", "ConfigMap", f.ns, "cm")))
	if err := client.Delete(f.ctx, read, ""); !apierrors.IsConflict(err) {
		t.Errorf("MRB-17: want a conflict, got %v", err)
	}
	f.get("v1", "ConfigMap", "cm")
}
