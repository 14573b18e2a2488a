package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// rewrite changes the Secret m, so that the ConfigMap a has a value.
func (f *fixture) rewrite(version, value string) {
	f.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "m", ResourceVersion: version},
		Data:       map[string][]byte{"x.yaml": []byte(configMap("a", value, ""))},
	}
	_, err := f.secrets.CoreV1().Secrets("n").Update(f.ctx, secret, metav1.UpdateOptions{})
	f.must(err)
	f.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: "m"}, "m/"+version)
}

// TestEndlessRewritesOfTheSource: a Secret that changes twice a second is applied twenty times at once, then every ten
// seconds, and the last content in the end; a requested run does not wait (MRB-56).
func TestEndlessRewritesOfTheSource(t *testing.T) {
	f := newApplied(t, "m", "a=0")
	applied, last, delayed := 0, "0", 0
	for i := range 240 {
		want := fmt.Sprint(i + 1)
		f.rewrite(fmt.Sprint(i+2), want)
		result, err := f.run("m")
		f.must(err)
		if value, _ := f.target.value("a"); value != last {
			applied, last = applied+1, value
		}
		if result.RequeueAfter > 0 {
			delayed++
		}
		if result.RequeueAfter > sourcePause || i < sourceBurst && last != want {
			t.Fatalf("MRB-56: change %d waits for %s, and %s is applied", i, result.RequeueAfter, last)
		}
		f.clock.SetTime(f.clock.Now().Add(500 * time.Millisecond))
	}
	if want := sourceBurst + int(2*time.Minute/sourcePause); applied < want-1 || applied > want+1 {
		t.Errorf("MRB-56: 240 changes in two minutes caused %d runs, want %d", applied, want)
	}
	got := total(t, f.Metrics.sourceRunsDelayed)
	expect.True(t, int(got) == delayed && delayed != 0, "MRB-56: the metric counts %v delayed runs of %d", got, delayed)
	f.clock.SetTime(f.clock.Now().Add(sourcePause))
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "240", "MRB-56: the last content is not applied")

	f.rewrite("1000", "requested")
	mr := f.get("m")
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	f.must(f.source.Update(f.ctx, mr))
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "requested", "MRB-56: a requested run waits")
	f.must(f.source.Delete(f.ctx, f.get("m")))
	f.complete("m")
	expect.Empty(t, f.states.pace, "MRB-56: the pace of a deleted ManagedResource is kept")
}

// TestRepeatedRunsOfOneChange: runs that repeat a failed one are not counted as changes of the source (MRB-56).
func TestRepeatedRunsOfOneChange(t *testing.T) {
	f := newApplied(t, "m", "a=0")
	f.refuse("PUT", "a", 500)
	f.rewrite("2", "1")
	for range 2 * sourceBurst {
		_, _ = f.run("m")
	}
	f.refuse("", "", 0)
	f.complete("m")
	value, _ := f.target.value("a")
	expect.Equal(t, value, "1", "MRB-56: a change waits for its repeated runs: %s, %s", value, f.condition("m"))
}
