package target

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

// MR-21, promise about changes of leader: replicas are taken back a minute after the last autoscaler is gone, also if it went before this process began.
func TestGraceIsInherited(t *testing.T) {
	key := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}
	writtenBy := func(subresource, fields string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Update", Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}})
		return object
	}
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	for name, tc := range map[string]struct {
		after  time.Duration
		live   *unstructured.Unstructured
		scaled bool
	}{
		"an autoscaler set them":       {live: writtenBy("scale", replicas), scaled: true},
		"somebody edited them":         {live: writtenBy("", replicas)},
		"another field":                {live: writtenBy("scale", `{"f:spec":{}}`)},
		"nobody knows":                 {live: &unstructured.Unstructured{Object: map[string]any{}}},
		"in the last moments of grace": {after: autoscalerGrace - time.Second, live: writtenBy("scale", replicas), scaled: true},
		"the grace is over":            {after: autoscalerGrace, live: writtenBy("scale", replicas)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := objects.New()
				object := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}
				l.Track(owner, []objects.Ref{{ID: object, Version: "v1"}})
				l.MarkInSync(owner, objects.Observation{ID: object, UID: "d", ResourceVersion: "1", Desired: 1})
				s := autoscalersOf(l)
				a := s.watches.autoscalers
				if a.InStartupGrace() || a.Inherits(key, tc.live) {
					t.Error("it is inherited before the autoscalers are known")
				}
				if _, err := s.list(t.Context(), scopeRequests{list: lists()}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tc.after)
				if young := tc.after < autoscalerGrace; a.InStartupGrace() != young {
					t.Errorf("young: %t", !young)
				}
				if a.Inherits(key, tc.live) != tc.scaled || a.Scales([]objects.ID{key}) != tc.scaled {
					t.Errorf("scaled: %t", !tc.scaled)
				}
				expect.Equal(t, len(l.Progress(owner).OutOfSync), 0, "are out of sync at once")
				time.Sleep(autoscalerGrace - tc.after)
				synctest.Wait()
				if a.Scales([]objects.ID{key}) || (len(l.Progress(owner).OutOfSync) == 1) != tc.scaled {
					t.Errorf("after the grace: scaled %t, out of sync %v", a.Scales([]objects.ID{key}), l.Progress(owner).OutOfSync)
				}
			})
		})
	}
}
