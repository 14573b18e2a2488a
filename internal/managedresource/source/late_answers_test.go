package source

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRC-9: that a condition begins to fail, and that it recovers, is told, also if the answer to the write of the former, or the latter, is lost.
func TestEventsAfterALostAnswer(t *testing.T) {
	for _, lost := range []string{"none", "failure", "recovery"} {
		t.Run(lost, func(t *testing.T) {
			recorded := fake.NewClientset()
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			events := NewEvents(recorded.CoreV1(), clock)
			scheme := runtime.NewScheme()
			must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
			lose := false
			source := crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					err := c.SubResource(sub).Patch(ctx, object, patch, opts...)
					if lose && err == nil {
						lose = false
						return errors.New("connection reset by peer")
					}
					return err
				},
			}).Build()
			statuses := NewStatuses(source, source, source, clock, events)
			must.Succeed(t, source.Create(t.Context(), &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1"}}))
			set := func(status resourcesv1alpha1.ConditionStatus) {
				for range 3 { // The run is tried again.
					clock.SetTime(clock.Now().Add(time.Second))
					if _, err := statuses.Update(t.Context(), key, "1", func(*resourcesv1alpha1.ManagedResource) *Change {
						return &Change{Conditions: []meta.ConditionChange{meta.Applied(status, "Reason"+string(status), "message")}}
					}); err == nil {
						return
					}
				}
			}
			set(resourcesv1alpha1.ConditionTrue)
			lose = lost == "failure"
			set(resourcesv1alpha1.ConditionFalse)
			lose = lost == "recovery"
			set(resourcesv1alpha1.ConditionTrue)
			events.Flush(t.Context())
			list, err := recorded.CoreV1().Events(key.Namespace).List(t.Context(), metav1.ListOptions{})
			must.Succeed(t, err)
			var reasons []string
			for _, event := range list.Items {
				reasons = append(reasons, event.Reason)
			}
			expect.Equal(t, strings.Join(reasons, " "), "ReasonFalse ReasonTrue", "Events")
		})
	}
}

// slow lets something happen before an answer comes.
type slow struct {
	client.Reader
	before func()
}

func (s *slow) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := s.Reader.Get(ctx, key, into, opts...)
	s.before()
	return err
}

// Nobody is given a form older than one that was acted on, also if a read of it was answered late.
func TestLateReadIsOlderThanAWrite(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	scheme := runtime.NewScheme()
	must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
	source := crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).Build()
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1"}}
	must.Succeed(t, source.Create(t.Context(), mr))
	live := &slow{Reader: source}
	statuses := NewStatuses(&laggingReader{source, mr.DeepCopy()}, live, source, clock, nil)
	written := ""
	live.before = func() {
		next, err := statuses.PatchMetadata(t.Context(), mr, map[string]any{"finalizers": []string{"x/y"}}, true)
		must.Succeed(t, err)
		written = next.ResourceVersion
	}
	must.Succeed(t, expect.ErrorOf(statuses.GetUncached(t.Context(), key)))
	latest, err := statuses.Get(t.Context(), key)
	if err != nil || latest.ResourceVersion != written {
		t.Errorf("got version %s with the finalizers %v, and version %s was written before: %v", latest.ResourceVersion, latest.Finalizers, written, err)
	}
}

// MRC-9: a write whose answer is lost is asked about once. An answer of the API server settles what became of the write, so that each check of
// the other ManagedResources does not cost a request more.
func TestLostWriteIsAskedAboutOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
	source := crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := c.SubResource(sub).Patch(ctx, object, patch, opts...); err != nil {
				return err
			}
			return errors.New("connection reset by peer")
		},
	}).Build()
	must.Succeed(t, source.Create(t.Context(), &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1"}}))
	reads := 0
	statuses := NewStatuses(source, &slow{source, func() { reads++ }}, source, clocktesting.NewFakePassiveClock(time.Unix(0, 0)), nil)
	if _, err := statuses.Update(t.Context(), key, "1", applied("Reason")); err == nil {
		t.Fatal("the answer is lost, and Update says nothing")
	}
	reads = 0
	for range 3 {
		must.Succeed(t, statuses.All(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "other"}, func(*resourcesv1alpha1.ManagedResource) {}))
	}
	expect.Equal(t, reads, 1, "MRC-9: the API server is asked %d times about one lost write, once is enough", reads)
}
