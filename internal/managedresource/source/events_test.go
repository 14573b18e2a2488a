package source

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestMessagesOfEventsAreBounded(t *testing.T) {
	client := fake.NewClientset()
	events := NewEvents(client.CoreV1(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	events.Warn(t.Context(), &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}, "Reason", "x"+strings.Repeat("€", 1000))
	events.Flush(t.Context())
	list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(err, list.Items)
	}
	if message := list.Items[0].Message; len(message) > maxNote || !utf8.ValidString(message) || !strings.Contains(message, "more bytes") {
		t.Errorf("%d bytes: %s", len(message), message[len(message)-40:])
	}
}

// MRC-9: the name of a ManagedResource may be as long as that of an Event, which has a number behind it.
func TestEventsOfLongNames(t *testing.T) {
	client := fake.NewClientset()
	events := NewEvents(client.CoreV1(), clocktesting.NewFakePassiveClock(time.Unix(1, 0)))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: strings.Repeat("abc.", 63) + "d"}}
	events.Warn(t.Context(), mr, "Reason", "message")
	events.Flush(t.Context())
	list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(err, list.Items)
	}
	if e := list.Items[0]; len(validation.IsDNS1123Subdomain(e.Name)) > 0 || e.InvolvedObject.Name != mr.Name {
		t.Errorf("%s: %v", e.Name, validation.IsDNS1123Subdomain(e.Name))
	}
}

// MRC-9: what is remembered of a ManagedResource ends with it, and a later one by its name does not recover from what it never had.
func TestFailuresEndWithTheManagedResource(t *testing.T) {
	for name, noticed := range map[string]bool{"its end is noticed": true, "created again before that": false} {
		t.Run(name, func(t *testing.T) {
			recorded := fake.NewClientset()
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			events := NewEvents(recorded.CoreV1(), clock)
			scheme := runtime.NewScheme()
			must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
			source := crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&resourcesv1alpha1.ManagedResource{}).Build()
			statuses := NewStatuses(source, source, source, clock, events)
			create := func(uid types.UID) *resourcesv1alpha1.ManagedResource {
				mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}
				must.Succeed(t, source.Create(t.Context(), mr))
				return mr
			}
			set := func(status resourcesv1alpha1.ConditionStatus, uid types.UID) {
				clock.SetTime(clock.Now().Add(time.Second)) // Events are named by their time.
				if _, err := statuses.Update(t.Context(), key, uid, func(*resourcesv1alpha1.ManagedResource) *Change {
					return &Change{Conditions: []meta.ConditionChange{meta.Applied(status, "Reason", "message")}}
				}); err != nil {
					t.Fatal(err)
				}
			}
			former := create("1")
			set(resourcesv1alpha1.ConditionFalse, "1")
			must.Succeed(t, source.Delete(t.Context(), former))
			if noticed {
				if _, err := statuses.Get(t.Context(), key); err == nil || len(events.failed) != 0 {
					t.Errorf("%v; %d are remembered, and none is there", err, len(events.failed))
				}
			}
			create("2")
			set(resourcesv1alpha1.ConditionTrue, "2")
			set(resourcesv1alpha1.ConditionFalse, "2")
			set(resourcesv1alpha1.ConditionTrue, "2")
			events.Flush(t.Context())
			list, err := recorded.CoreV1().Events(key.Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 3 {
				t.Errorf("%d Events, want a failure of the first, a failure and the recovery of the second; %v", len(list.Items), err)
			}
			expect.Equal(t, len(events.failed), 0, "are remembered")
		})
	}
}
