package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
)

// logged has the lines of a fixture's context kept from now on.
func (f *fixture) logged() *[]string {
	lines := &[]string{}
	f.ctx = ctrllog.IntoContext(f.ctx, funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{}))
	return lines
}

// traces returns the messages of the Events about writes, in their order.
func (f *fixture) traces() []string {
	f.Helper()
	return f.told(func(event *corev1.Event) bool {
		return event.Reason == meta.ReasonObjectsWritten && event.Type == corev1.EventTypeNormal
	})
}

// TestTrail: each run that wrote something leaves one line and one Event, and a run that wrote nothing leaves none.
func TestTrail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lines := f.logged()
	step := func(what, written string, deletions ...string) {
		t.Helper()
		*lines = nil
		before := len(f.traces())
		f.complete("m")
		told := f.traces()[before:]
		sum := *f.get("m").Status.SecretsDataChecksum
		message := "Checksum of the Secrets: " + sum + ". " + written
		want := []string{meta.ReasonObjectsWritten + ": " + message}
		if written == "" {
			want = []string{}
		}
		expect.DeepEqual(t, told, want, "MRB-51: %s: told", what)
		count := func(text string) int { return strings.Count(strings.Join(*lines, "\n"), text) }
		if got := count(`"msg"="Wrote objects"`); got != len(want) || written != "" && count(fmt.Sprintf(`"written"=%q`, message)) != 1 {
			t.Errorf("MRB-51: %s: %d lines: %s", what, got, *lines)
		}
		expect.Equal(t, count("Deleted an object"), len(deletions), "MRB-51: %s: lines of deletions: %s", what, *lines)
		for _, deletion := range deletions {
			expect.Equal(t, count(deletion), 1, "MRB-51: %s: no line with %s: %s", what, deletion, *lines)
		}
	}
	f.managed("m", "a=1", "b=1", "c=1", "d=1", "e=1")
	step("the first run", "Created (5): v1/ConfigMap/n/a, v1/ConfigMap/n/b, v1/ConfigMap/n/c and 2 more")
	step("an idle run", "")
	f.secret("m", "2", "a=1", "b=2", "f=1")
	step("new content", "Deleted because no manifest has the object (3): v1/ConfigMap/n/c, v1/ConfigMap/n/d, v1/ConfigMap/n/e. Created (1): v1/ConfigMap/n/f. Updated (1): v1/ConfigMap/n/b",
		`"resource"="v1/ConfigMap/n/c" "reason"="no manifest has the object"`, `"resource"="v1/ConfigMap/n/d" "reason"="no manifest has the object"`, `"resource"="v1/ConfigMap/n/e" "reason"="no manifest has the object"`)
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.edited("a", setValue("2"))
	step("a repair, which has an Event of its own", "")
}

// TestTrailOfDeletion: the deletion of a ManagedResource names its objects, a refused deletion none.
func TestTrailOfDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lines := f.logged()
	f.apply("m", "a=1", "b=1")
	refused := true
	f.target.hook(func(method, _ string) int {
		if refused && method == http.MethodDelete {
			return http.StatusForbidden
		}
		return 0
	})
	f.must(f.source.Delete(f.ctx, f.get("m")))
	before := len(f.traces())
	_, _ = f.run("m")
	if told := f.traces()[before:]; len(told) > 0 || strings.Contains(strings.Join(*lines, ""), "Deleted an object") {
		t.Errorf("MRB-51: deletions that were refused are told: %q", told)
	}
	refused = false
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	_, _ = f.run("m")
	want := []string{"ObjectsWritten: Deleted because the ManagedResource is deleted (2): v1/ConfigMap/n/a, v1/ConfigMap/n/b"}
	expect.DeepEqual(t, f.traces()[before:], want, "MRB-51: told")
	expect.Equal(t, strings.Count(strings.Join(*lines, "\n"), `"reason"="the ManagedResource is deleted"`), 2,
		"MRB-51: lines: %s", *lines)
}

// TestTrailOfGivingUp: a run tells of an object that it hands over, and of finalizers that it removes.
func TestTrailOfGivingUp(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "two", "a=1")
	f.apply("m", "a=1", "b=1")
	f.target.change("b", holdBy("x/y"))
	f.target.change("b", setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "-1s"))
	before := len(f.traces())
	f.must(f.source.Delete(f.ctx, f.get("m")))
	_, _ = f.run("m")
	f.clock.SetTime(f.clock.Now().Add(pendingRetry))
	_, _ = f.run("m")
	want := []string{
		"ObjectsWritten: Deleted because the ManagedResource is deleted (1): v1/ConfigMap/n/b. Handed over (1): v1/ConfigMap/n/a",
		"ObjectsWritten: Removed the finalizers (1): v1/ConfigMap/n/b",
	}
	expect.DeepEqual(t, f.traces()[before:], want, "MRB-51: told")
}

// TestTrailOfRecreation: an object that is deleted since it cannot be updated is told, and its creation after that.
func TestTrailOfRecreation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lines := f.logged()
	const metadata = "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"
	f.managed("m")
	f.manifests("m", "2", configMap("a", "1", metadata))
	f.complete("m")
	f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
	f.manifests("m", "3", configMap("a", "2", metadata))
	before := len(f.traces())
	f.complete("m")
	told := strings.Join(f.traces()[before:], "\n")
	if !strings.Contains(told, "Deleted because the object is recreated (1): v1/ConfigMap/n/a") || strings.Count(told, "v1/ConfigMap/n/a") > 2 ||
		strings.Count(strings.Join(*lines, "\n"), `"resource"="v1/ConfigMap/n/a" "reason"="the object is recreated"`) != 1 {
		t.Errorf("MRB-51: told %q, lines %s", told, *lines)
	}
}
