package source

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// laggingReader is a cache that has one form, whatever is written.
type laggingReader struct {
	client.Reader
	mr *resourcesv1alpha1.ManagedResource
}

func (r *laggingReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.mr.DeepCopyInto(into.(*resourcesv1alpha1.ManagedResource))
	return nil
}

func (r *laggingReader) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*resourcesv1alpha1.ManagedResourceList).Items = []resourcesv1alpha1.ManagedResource{*r.mr}
	return nil
}

var key = types.NamespacedName{Namespace: "ns", Name: "mr"}

func newStatuses(t *testing.T) (*Statuses, client.Client, *laggingReader, *clocktesting.FakePassiveClock) {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mr", UID: "u", Generation: 1}}
	live := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(mr).WithStatusSubresource(mr).Build()
	cached := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, live.Get(t.Context(), key, cached))
	cache := &laggingReader{mr: cached}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	return NewStatuses(cache, live, live, clock, nil), live, cache, clock
}

func applied(reason string) func(*resourcesv1alpha1.ManagedResource) *Change {
	return func(*resourcesv1alpha1.ManagedResource) *Change {
		return &Change{Conditions: []meta.ConditionChange{meta.Applied(resourcesv1alpha1.ConditionTrue, reason, "x")}}
	}
}

// MR-14: what was written counts until the cache has it, and what was computed from it is what the API server has.
func TestWrittenFormsCount(t *testing.T) {
	s, live, _, clock := newStatuses(t)
	next, err := s.Update(t.Context(), key, "u", applied("One"))
	must.Succeed(t, err)
	there := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, live.Get(t.Context(), key, there))
	if there.ResourceVersion != next.ResourceVersion || meta.Conditions(there.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied).Reason != "One" ||
		!there.Status.Conditions[0].LastUpdateTime.Equal(&next.Status.Conditions[0].LastUpdateTime) {
		t.Errorf("computed %v, the API server has %v", next.Status, there.Status)
	}
	expect.Equal(t, expect.First(s.Get(t.Context(), key)).ResourceVersion, next.ResourceVersion, "Get returns an older version")
	seen := ""
	if err := s.All(t.Context(), types.NamespacedName{}, func(mr *resourcesv1alpha1.ManagedResource) { seen = mr.ResourceVersion }); err != nil || seen != next.ResourceVersion {
		t.Errorf("All went back to %s: %v", seen, err)
	}
	again, err := s.Update(t.Context(), key, "u", applied("One"))
	expect.True(t, err == nil && again.ResourceVersion == next.ResourceVersion, "the same was written again: %v", err)
	expect.Equal(t, s.Lag(t.Context(), key), lag+time.Second, "MRB-47: a cache that lags is read again after")
	expect.True(t, !s.Observed(next) && s.writtenOf(key).mr == nil && s.Lag(t.Context(), key) == 0,
		"what the cache has is held")
	s.Written(next)
	before := next.DeepCopy()
	before.ResourceVersion = "1"
	expect.True(t, s.Observed(before), "MRB-47: an older form than was written is news to nobody")
	clock.SetTime(clock.Now().Add(lag + time.Second))
	expect.True(t, expect.First(s.Get(t.Context(), key)).ResourceVersion != next.ResourceVersion,
		"a form that the cache never gets is held for ever: the source may have been restored")
}

// MR-14: a conflict shows the form that is there, be it older than what was known: nobody gets the known one any more.
func TestRestoredSource(t *testing.T) {
	s, live, _, _ := newStatuses(t)
	future := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, live.Get(t.Context(), key, future))
	version := future.ResourceVersion
	future.ResourceVersion, future.Generation = "9999", 7
	s.Written(future)
	got, err := s.GetUncached(t.Context(), key)
	must.True(t, err == nil && got.ResourceVersion == version, "got %v, %v", got, err)
	expect.Equal(t, expect.First(s.Get(t.Context(), key)).Generation, 1, "Get still returns generation")
	s.Written(future)
	if got, err := s.Update(t.Context(), key, "u", applied("One")); err != nil || got.Generation != 1 {
		t.Errorf("MR-14: a conflict is not answered by another read: got %v, %v", got, err)
	}
}

// MRB-47: an answer of the API server that is older than the cached form proves that the source was restored.
func TestCacheThatIsAhead(t *testing.T) {
	s, _, cache, _ := newStatuses(t)
	proof := ""
	s.Restored = func(p string) { proof = p }
	cache.mr.ResourceVersion, cache.mr.Generation = "9999", 7
	got, err := s.Update(t.Context(), key, "u", applied("One"))
	must.True(t, err == nil && got.Generation == 1, "got %v, %v", got, err)
	expect.Contains(t, proof, "in version 9999 before", "the proof of the restore")
}

// MR-14: a version that a restored source gave to another form does not make that form what it was computed from.
func TestVersionOfAnotherObject(t *testing.T) {
	s, live, cache, _ := newStatuses(t)
	cache.mr.Generation, cache.mr.Status.Resources = 7, []resourcesv1alpha1.ObjectReference{{}}
	got, err := s.Update(t.Context(), key, "u", applied("One"))
	expect.True(t, err == nil && got.Generation == 1 && len(got.Status.Resources) == 0, "got %v, %v", got, err)
	there := &resourcesv1alpha1.ManagedResource{}
	if err := live.Get(t.Context(), key, there); err != nil || there.Generation != 1 {
		t.Errorf("got %v, %v", there, err)
	}
	cache.mr.ResourceVersion = there.ResourceVersion
	s.forget(key)
	if _, err := s.PatchMetadata(t.Context(), cache.mr, map[string]any{"finalizers": []string{"x/y"}}, true); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

// MR-14: another ManagedResource by the same name is another one.
func TestAnotherUID(t *testing.T) {
	s, _, _, _ := newStatuses(t)
	expect.Equal(t, expect.ErrorOf(s.Update(t.Context(), key, "former", applied("One"))), ErrGone)
}

// MRS-1, MR-14: where a restored source has given the version to a form with another status, what is said to be done is said whole.
func TestReconciledIsSaidWhole(t *testing.T) {
	s, live, cache, _ := newStatuses(t)
	cache.mr.Status.ObservedGeneration = 1
	_, err := s.Update(t.Context(), key, "u", func(*resourcesv1alpha1.ManagedResource) *Change {
		return &Change{Reconciled: &Reconciled{Generation: 1, Checksum: "sum"}}
	})
	must.Succeed(t, err)
	there := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, live.Get(t.Context(), key, there))
	if there.Status.ObservedGeneration != 1 || there.Status.SecretsDataChecksum == nil || *there.Status.SecretsDataChecksum != "sum" {
		t.Errorf("got %+v", there.Status)
	}
}
