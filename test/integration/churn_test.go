package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// MRB-40: others edit, delete and replace the objects of a ManagedResource, some of them so often that their repair is
// held, and ask for full runs all the time. ResourcesHealthy is not True while an object is missing for longer than an
// object may be.
func TestMissingObjectsAreToldInChurn(t *testing.T) {
	const (
		number, hot = 200, 8
		lasts       = 12 * time.Second
		// told is three seconds, and what an idle machine takes for the requests of two looks.
		told = 4500 * time.Millisecond
		// busy bounds, in looks of this test, what a busy machine takes for the requests that tell it.
		busy = 10
	)
	t.Parallel()
	f := newFixture(t)
	var manifests strings.Builder
	for i := range number {
		manifests.WriteString(configMap(nameInChurn(i), "data: {a: b}\n"))
	}
	f.managed("mr", manifests.String())
	f.settled("mr")

	ctx, end := context.WithTimeout(f.ctx, lasts)
	defer end()
	var users sync.WaitGroup
	defer users.Wait()
	user := func(pause time.Duration, do func(i int)) {
		users.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				do(i)
				pass(ctx, pause)
			}
		})
	}
	user(200*time.Millisecond, func(int) {
		annotations := map[string]any{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
		patch := harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations}})
		_ = f.seed.Patch(ctx, harness.ManagedResource(f.ns, "mr"), patch)
	})
	for hand := range 2 { // All objects are edited, deleted and replaced, some three times each.
		random := rand.New(rand.NewPCG(uint64(hand), 1))
		user(lasts/(3*number), func(int) { f.churn(ctx, hot+random.IntN(number-hot), random.IntN(3)) })
	}
	for i := range hot { // These so often that their repairs are held, and then they come and go.
		user(time.Duration(1+i)*10*time.Millisecond, func(round int) {
			if round < 15 {
				f.churn(ctx, i, round%2)
				pass(ctx, 150*time.Millisecond)
				return
			}
			f.churn(ctx, i, 2)
			pass(ctx, 3*time.Second)
			_ = f.shoot.Delete(ctx, f.inChurn(i))
			pass(ctx, 5*time.Second)
		})
	}

	missing := map[string]time.Time{}
	var worst, longest, slowest time.Duration
	at, last := "", time.Now()
	look := func() {
		began := time.Now()
		if gap := began.Sub(last); gap > time.Second {
			clear(missing) // Objects may have come and gone since.
		}
		list := &corev1.ConfigMapList{}
		healthy, _ := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesHealthy)
		f.must(f.shoot.List(f.ctx, list, client.InNamespace(f.ns)))
		last = time.Now()
		slowest = max(slowest, last.Sub(began))
		present := map[string]bool{}
		for i := range list.Items {
			present[list.Items[i].Name] = true
		}
		for i := range number {
			name := nameInChurn(i)
			since, found := missing[name]
			switch {
			case present[name]:
				delete(missing, name)
			case !found:
				missing[name] = last
			default:
				longest = max(longest, began.Sub(since))
				if strings.HasPrefix(healthy, "True") && began.Sub(since) > worst {
					worst, at = began.Sub(since), name
				}
			}
		}
	}
	for ctx.Err() == nil {
		look()
		pass(f.ctx, 50*time.Millisecond)
	}
	t.Logf("an object was missing for %s, and for %s (%s) while ResourcesHealthy was True; a look took up to %s", longest, worst, at, slowest)
	if worst > max(told, 3*time.Second+busy*slowest) {
		t.Errorf("MRB-40/T3-11: %s is missing for %s while ResourcesHealthy is True", at, worst)
	}
}

func nameInChurn(i int) string { return fmt.Sprintf("churn-%03d", i) }

func (f *fixture) inChurn(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: nameInChurn(i)}}
}

// churn edits, deletes or replaces an object, as others do who know nothing of its ManagedResource, nor of its label.
func (f *fixture) churn(ctx context.Context, i, how int) {
	object := f.inChurn(i)
	switch how {
	case 0:
		_ = f.shoot.Patch(ctx, object, harness.MergePatch(map[string]any{"data": map[string]any{"a": "edited"}}))
	case 1:
		_ = f.shoot.Delete(ctx, object)
	default:
		_ = f.shoot.Delete(ctx, object)
		object.Data = map[string]string{"a": "replaced"}
		_ = f.shoot.Create(ctx, object)
	}
}

// pass waits until time has passed, or the context ends.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
