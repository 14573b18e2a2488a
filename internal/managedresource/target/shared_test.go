package target

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// live: what is handed out is as good as one that was read at that moment. It is not, if it was listed in another version than the one that is asked for:
// a manifest that has a new version of its kind since the last start, or two ManagedResources that have an object in different versions.
func TestReadInTheVersionOfTheManifest(t *testing.T) {
	s, client := newServer(t)
	s.serve(oldWidgets, "widgets", true)
	now := s.put(widgets, "n", "w", map[string]any{"spec": map[string]any{"size": "1"}, "status": map[string]any{"ready": "yes"}})
	s.put(oldWidgets, "n", "w", map[string]any{"metadata": now["metadata"], "spec": map[string]any{"oldSize": "1"}, "status": map[string]any{"oldReady": "yes"}})
	l := objects.New()
	w := started(t, client, l)
	before, after := refTo(oldWidgets, "n", "w"), refTo(widgets, "n", "w")
	w.Expect(owner, []objects.Ref{before}) // What the inventory has.
	run(t, w)
	eventually(t, "known", func() bool { return l.Progress(owner).AllKnown && w.Covered(before) })
	w.Track(owner, []objects.Ref{after, before}) // What the plan and the inventory have.
	object, err := readFrom(t.Context(), w, after)
	must.Succeed(t, err)
	if got := object.GroupVersionKind(); got != after.GVK() {
		t.Errorf("asked for %s, got %s: %v", after.GVK(), got, object.Object)
	}
}

// live: of an object that two ManagedResources have in different versions one list is kept, and it is handed out to who has it in that version.
func TestReadInTheVersionOfEach(t *testing.T) {
	s, client := newServer(t)
	s.serve(oldWidgets, "widgets", true)
	now := s.put(widgets, "n", "w", nil)
	listed := s.put(oldWidgets, "n", "w", map[string]any{"metadata": now["metadata"]})
	l := objects.New()
	w := started(t, client, l)
	before, after := refTo(oldWidgets, "n", "w"), refTo(widgets, "n", "w")
	w.Track(objects.Owner{Namespace: "n", Name: "other"}, []objects.Ref{before})
	w.Track(owner, []objects.Ref{after})
	run(t, w)
	eventually(t, "both lists were read", func() bool { return l.Progress(owner).AllKnown && w.Covered(before) && w.Covered(after) })
	w.live.keep(&packer{}, &unstructured.Unstructured{Object: listed}, l.Get(after.ID).Revision.Requested)
	object, err := readFrom(t.Context(), w, after)
	must.Succeed(t, err)
	expect.Equal(t, object.GroupVersionKind(), after.GVK(), "asked for")
}

// Promise: replicas are taken back a minute after the last HorizontalPodAutoscaler of a workload is gone, MR-21, MRD-16: also if that named it by an
// equivalent kind.
func TestReplicasAreTakenBackByEquivalentKind(t *testing.T) {
	for _, apiVersion := range []string{"apps/v1", "extensions/v1beta1"} {
		t.Run(apiVersion, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := objects.New()
				key := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}
				l.Track(owner, []objects.Ref{{ID: key, Version: "v1"}})
				a := autoscalersOf(l)
				must.Succeed(t, a.Add(autoscaler("u", apiVersion, "Deployment", "d")))
				keys := plan.NewEquivalences(nil).Keys(objects.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"})
				must.True(t, a.watches.autoscalers.Scales(keys), "it does not count")
				l.MarkInSync(owner, objects.Observation{ID: key, UID: "d", ResourceVersion: "1", Desired: 1})
				must.Succeed(t, a.Delete(autoscaler("u", apiVersion, "Deployment", "d")))
				time.Sleep(2 * autoscalerGrace)
				synctest.Wait()
				if a.watches.autoscalers.Scales(keys) || len(l.Progress(owner).OutOfSync) != 1 {
					t.Errorf("scaled still: %t; nobody is told that its replicas are the manifest's again: out of sync %v", a.watches.autoscalers.Scales(keys), l.Progress(owner).OutOfSync)
				}
			})
		})
	}
}
