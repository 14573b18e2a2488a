package managedresource

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// MR-13: what a run leaves alone, as it was as it should be a moment ago, counts as applied only if nobody has told otherwise by the time at
// which the run says so.
func TestAppliedIsNotSaidOfWhatChangedSince(t *testing.T) {
	f := newFixture(t)
	f.watch()
	f.managed("m", "a=1", "b=1")
	f.settle("m")
	f.awaitCovered("m")
	f.secret("m", "2", "a=1", "b=2")
	changes, said := 0, 0
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		content, err := patch.Data(object)
		f.must(err)
		if value, _ := f.target.value("a"); strings.Contains(string(content), "observedGeneration") || strings.Contains(string(content), "secretsDataChecksum") {
			if said++; value != "1" {
				t.Errorf("a is %s, and the run says that it is done", value)
			}
		}
		return c.SubResource(sub).Patch(ctx, object, patch, opts...)
	}
	f.target.hook(func(method, name string) int {
		if method == http.MethodPut && name == "b" && changes == 0 {
			changes++
			f.edited("a", setValue("7")) // The run has passed it by.
		}
		return 0
	})
	f.settle("m")
	if value, _ := f.target.value("a"); value != "1" || changes != 1 || said != 1 {
		t.Errorf("a is %s after %d changes, %d reports", value, changes, said)
	}
}

// MRX-5: before each deletion it is asked for still, as far as anybody told.
func TestDeletionsEndWhenTheyAreNotAskedForAnyMore(t *testing.T) {
	for how, tc := range map[string]struct {
		begin, change func(*fixture)
	}{
		"the class goes, and comes back": {
			begin: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
			},
			change: func(f *fixture) { f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = nil }) },
		},
		"objects are to be kept after all": {
			begin: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
			},
			change: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
			},
		},
		"it is to be ignored": {
			begin: func(f *fixture) { f.secret("m", "2") },
			change: func(f *fixture) {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
					mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
				})
			},
		},
		"the Secret has them again": {
			begin:  func(f *fixture) { f.secret("m", "2") },
			change: func(f *fixture) { f.secret("m", "3", "a=1", "b=1") },
		},
	} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m", "a=1", "b=1")
			f.settle("m")
			uids := map[string]string{"a": f.uid("a"), "b": f.uid("b")}
			tc.begin(f)
			var mu sync.Mutex
			var looks, deletions []string
			changed := make(chan struct{})
			f.target.hook(func(method, name string) int {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case method == http.MethodDelete:
					deletions = append(deletions, name)
					if len(deletions) == 1 {
						tc.change(f)
						close(changed)
					}
				case method == http.MethodGet && len(looks) < 2:
					if looks = append(looks, name); len(looks) == 2 {
						mu.Unlock()
						<-changed
						mu.Lock()
					}
				}
				return 0
			})
			for range 4 {
				_, _ = f.run("m")
			}
			if len(deletions) != 1 || len(looks) != 2 || f.uid(looks[1]) != uids[looks[1]] {
				t.Errorf("looked at %v, deleted %v", looks, deletions)
			}
		})
	}
}
