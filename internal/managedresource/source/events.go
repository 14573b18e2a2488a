package source

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// maxNote is the longest message that an Event may have, in bytes; the API server refuses a longer one.
const maxNote = 1024

// Events records when a ManagedResource begins to fail and when it recovers. It only creates Events and never patches
// one, because installations allow only that (MRC-9), and transitions do not repeat within moments.
//
// No run waits until an Event is created, so that slow Events delay neither repairs nor statuses.
type Events struct {
	// The lock of sender protects failed, too.
	sender
	clock clock.PassiveClock
	// spam limits the Normal Events of one reason about one ManagedResource.
	spam   *record.EventSourceObjectSpamFilter
	failed map[types.NamespacedName]failure
}

// failure has the conditions of one ManagedResource whose failure was reported, but no recovery since. The UID
// distinguishes it from a later ManagedResource of the same name, which has not failed.
type failure struct {
	uid   types.UID
	types []resourcesv1alpha1.ConditionType
}

// NewEvents returns a recorder of Events, which it creates with client.
func NewEvents(client corev1client.EventsGetter, clock clock.PassiveClock) *Events {
	return &Events{
		sender: sender{client: client}, clock: clock, failed: map[types.NamespacedName]failure{},
		spam: record.NewEventSourceObjectSpamFilter(mostUnsent, 25, 1.0/300, clock, func(event *corev1.Event) string {
			return string(event.InvolvedObject.UID) + event.Reason
		}),
	}
}

// transitions records Events about conditions that fail or recover. Its branches are the table of these transitions.
func (e *Events) transitions(ctx context.Context, before, after *resourcesv1alpha1.ManagedResource) {
	if e == nil {
		return
	}
	for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied,
		resourcesv1alpha1.ResourcesHealthy} {
		was := meta.Conditions(before.Status.Conditions).Status(conditionType)
		now := meta.Conditions(after.Status.Conditions).Get(conditionType)
		if now == nil || was == now.Status {
			continue
		}
		switch {
		case now.Status == resourcesv1alpha1.ConditionFalse && after.DeletionTimestamp == nil &&
			(conditionType == resourcesv1alpha1.ResourcesApplied || was == resourcesv1alpha1.ConditionTrue):
			e.mark(after, conditionType, true)
			e.create(ctx, after, corev1.EventTypeWarning, now.Reason, now.Message)
		case now.Status == resourcesv1alpha1.ConditionTrue &&
			(was == resourcesv1alpha1.ConditionFalse || e.isMarked(after, conditionType)):
			if e.isMarked(after, conditionType) {
				e.mark(after, conditionType, false)
				e.create(ctx, after, corev1.EventTypeNormal, now.Reason, now.Message)
			}
		}
	}
}

func (e *Events) isMarked(mr *resourcesv1alpha1.ManagedResource, conditionType resourcesv1alpha1.ConditionType) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.failed[types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}]
	return known.uid == mr.UID && slices.Contains(known.types, conditionType)
}

// forget removes a ManagedResource that is gone.
func (e *Events) forget(key types.NamespacedName) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.failed, key)
}

func (e *Events) mark(mr *resourcesv1alpha1.ManagedResource, conditionType resourcesv1alpha1.ConditionType,
	failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
	known := e.failed[key]
	if known.uid != mr.UID {
		known = failure{uid: mr.UID}
	}
	known.types = slices.DeleteFunc(known.types,
		func(t resourcesv1alpha1.ConditionType) bool { return t == conditionType })
	if failed {
		known.types = append(known.types, conditionType)
	}
	if len(known.types) == 0 {
		delete(e.failed, key)
		return
	}
	e.failed[key] = known
}

// Warn records a Warning Event about a problem that no condition shows.
func (e *Events) Warn(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason, message string) {
	e.create(ctx, mr, corev1.EventTypeWarning, reason, message)
}

// Report records a Normal Event. For one ManagedResource and reason it allows 25 Events at once, and then one in five
// minutes, as client-go does.
func (e *Events) Report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason, message string) {
	if event := e.event(mr, corev1.EventTypeNormal, reason, message); !e.spam.Filter(event) {
		e.send(ctx, event)
	}
}

func (e *Events) create(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, eventType, reason, message string) {
	e.send(ctx, e.event(mr, eventType, reason, message))
}

func (e *Events) event(mr *resourcesv1alpha1.ManagedResource, eventType, reason, message string) *corev1.Event {
	message = meta.Shortened(message, maxNote)
	now := metav1.NewTime(e.clock.Now())
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: meta.EventName(mr.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource",
			Namespace: mr.Namespace, Name: mr.Name, UID: mr.UID, ResourceVersion: mr.ResourceVersion,
		},
		Type: eventType, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "gardener-resource-manager"}, ReportingController: "gardener-resource-manager",
	}
}
