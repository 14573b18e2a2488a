package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
)

// orphan is a ConfigMap with the origin of a ManagedResource, as an audit finds it.
func (f *fixture) orphan(namespace, name, mr string) target.Orphan {
	return target.Orphan{ID: objects.NewID(schema.GroupKind{Kind: "ConfigMap"}, namespace, name), Origin: f.owners.Origin(steps.OwnerOf(f.get(mr)))}
}

// requests is the number of requests to the target.
func (f *fixture) requests() int {
	return f.target.count(http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
}

// audit is an audit that finds orphans, each in a list of its own.
func (f *fixture) audit(found ...target.Orphan) {
	taking := f.Orphans()
	for _, orphan := range found {
		taking.Found(f.ctx, []target.Orphan{orphan})
	}
	taking.Ended(f.ctx)
}

// TestOrphans_AreReported: an object that carries our origin and that no inventory names is reported, never written, and nothing else is taken for one (MRB-54).
func TestOrphans_AreReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(*fixture)
		change  func(*target.Orphan)
		want    bool
	}{
		"MRB-54/no inventory has it":                            {want: true},
		"MRB-54/the origin of another source":                   {change: func(o *target.Orphan) { o.Origin = "elsewhere:n/mr" }},
		"MRB-54/its ManagedResource is gone":                    {change: func(o *target.Orphan) { o.Origin = "n/gone" }},
		"MRB-54/an origin that cannot be parsed":                {change: func(o *target.Orphan) { o.Origin = "?" }},
		"MRB-54/collectable, and nobody collects":               {change: func(o *target.Orphan) { o.Collectable = true }, want: true},
		"MRB-54/the garbage collector deletes it":               {change: func(o *target.Orphan) { o.Collectable = true }, prepare: func(f *fixture) { f.configure(func(o *Options) { o.GarbageCollector = true }) }},
		"MRB-54/its ManagedResource was not applied completely": {prepare: func(f *fixture) { f.edit("mr", func(*resourcesv1alpha1.ManagedResource) {}) }},
		"MRB-54/its ManagedResource keeps its objects": {prepare: func(f *fixture) {
			f.edit("mr", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
			f.complete("mr")
		}},
		"MRB-54/its ManagedResource is ignored": {prepare: func(f *fixture) { f.setIgnored("mr") }},
		"MRB-54/another inventory names it": {prepare: func(f *fixture) {
			f.apply("second", "lost=1")
		}},
		"MRB-54/the inventory of an ignored one names it": {prepare: func(f *fixture) {
			f.apply("second", "lost=1")
			f.setIgnored("second")
			f.restart("mr")
			f.complete("mr")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "mr", "a=1")
			if tc.prepare != nil {
				tc.prepare(f)
			}
			orphan := f.orphan("n", "lost", "mr")
			if tc.change != nil {
				tc.change(&orphan)
			}
			requests := f.requests()
			f.audit(orphan)
			want := "OrphansFound: Objects with this ManagedResource as their origin that no inventory has (1): ConfigMap n/lost. They are neither repaired nor deleted."
			if got := strings.Contains(f.events(), want); got != tc.want {
				t.Errorf("reported: got %t, want %t: %s", got, tc.want, f.events())
			}
			expect.Equal(t, total(t, f.Metrics.orphans) != 0, tc.want, "counted")
			got := f.requests()
			expect.Equal(t, got, requests, "%d requests were sent to the target", got-requests)
		})
	}
}

// noReads is an API server that must not be read from.
type noReads struct{ *testing.T }

func (r noReads) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	r.Error("MRB-54: an orphan costs an uncached read")
	return nil
}

func (r noReads) List(context.Context, client.ObjectList, ...client.ListOption) error {
	r.Error("MRB-54: an orphan costs an uncached list")
	return nil
}

// MRB-54: forged orphans cost one Event for each ManagedResource and audit, of bounded length, and no request.
func TestOrphans_CostOneEventEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("one", "a=1")
	f.managed("two", "b=1")
	f.complete("one")
	f.complete("two")
	f.configure(func(o *Options) { o.Statuses = source.NewStatuses(f.source, noReads{t}, f.source, f.clock, f.Events) })
	var found []target.Orphan
	for i := range 5000 {
		found = append(found, f.orphan("n", fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 240)), []string{"one", "two"}[i%2]))
	}
	requests := f.requests()
	f.audit(found...)
	reported := map[string]int{}
	f.told(func(event *corev1.Event) bool {
		if event.Reason != reasonOrphans {
			return false
		}
		reported[event.InvolvedObject.Name]++
		expect.True(t, strings.Contains(event.Message, "no inventory has (2500): ConfigMap n/000") && len(event.Message) <= 1024,
			"MRB-54: %s", event.Message)
		return true
	})
	expect.True(t, reported["one"] == 1 && reported["two"] == 1, "MRB-54: %v Events", reported)
	got := f.requests()
	expect.Equal(t, got, requests, "MRB-54: %d requests were sent to the target", got-requests)
	expect.Equal(t, total(t, f.Metrics.orphans), 5000, "MRB-54: are counted")
}

// MRB-54: an Event names the first orphans, and says how many more there are; the next audit begins anew.
func TestOrphans_AreNamedUpToTen(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "mr", "a=1")
	var found []target.Orphan
	for i := range 12 {
		found = append(found, f.orphan("n", fmt.Sprintf("lost-%02d", 11-i), "mr"))
	}
	taking := f.Orphans()
	taking.Found(f.ctx, found)
	taking.Ended(f.ctx)
	if got := f.events(); !strings.Contains(got, "(12): ConfigMap n/lost-02, ConfigMap n/lost-03, ") || !strings.Contains(got, "ConfigMap n/lost-11 and 2 more. They are") {
		t.Errorf("MRB-54: %s", got)
	}
	taking.Ended(f.ctx)
	expect.Equal(t, strings.Count(f.events(), reasonOrphans), 1, "MRB-54")
}
