package meta

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// TestSameDesiredState: what of a ManagedResource another form must have in common, for a plan to be good for both (MRB-3).
func TestSameDesiredState(t *testing.T) {
	const class = Class("x")
	form := func(change func(*resourcesv1alpha1.ManagedResource)) *resourcesv1alpha1.ManagedResource {
		name := string(class)
		mr := &resourcesv1alpha1.ManagedResource{}
		mr.UID, mr.Generation, mr.Spec.Class = "u", 1, &name
		mr.Finalizers = []string{class.Finalizer()}
		change(mr)
		return mr
	}
	annotate := func(name, value string) func(*resourcesv1alpha1.ManagedResource) {
		return func(mr *resourcesv1alpha1.ManagedResource) { mr.Annotations = map[string]string{name: value} }
	}
	for name, c := range map[string]struct {
		change func(*resourcesv1alpha1.ManagedResource)
		same   bool
	}{
		"MRB-3/the same":      {func(*resourcesv1alpha1.ManagedResource) {}, true},
		"MRB-3/an annotation": {annotate("a", "b"), true},
		"MRB-3/an empty inventory": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Resources = []resourcesv1alpha1.ObjectReference{}
		}, true},
		"MRB-3/another one":           {func(mr *resourcesv1alpha1.ManagedResource) { mr.UID = "v" }, false},
		"MRB-3/another specification": {func(mr *resourcesv1alpha1.ManagedResource) { mr.Generation = 2 }, false},
		"MRB-3/it is being deleted":   {func(mr *resourcesv1alpha1.ManagedResource) { mr.DeletionTimestamp = &metav1.Time{} }, false},
		"MRB-3/it is ignored":         {annotate(resourcesv1alpha1.AnnotationIgnore, "true"), false},
		"MRF-10/it is held":           {annotate(resourcesv1alpha1.AnnotationLeaveAloneUntil, "x"), false},
		"MRK-3/it is not ours yet":    {func(mr *resourcesv1alpha1.ManagedResource) { mr.Finalizers = nil }, false},
		"MRK-6/it waits for a class": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Finalizers = append(mr.Finalizers, Class("y").Finalizer())
		}, false},
		"MRB-3/another inventory": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{Name: "a"}}}
		}, false},
	} {
		a, b := form(func(*resourcesv1alpha1.ManagedResource) {}), form(c.change)
		got, back := class.SameDesiredState(a, b), class.SameDesiredState(b, a)
		expect.True(t, got == c.same && back == c.same, "%s: the same: %v and %v", name, got, back)
		expect.True(t, class.SameDesiredState(b, b.DeepCopy()), "%s: it differs from itself", name)
	}
}

// TestHandles: an instance has to do with ManagedResources of its class, and with those that have its finalizer (MRK-4).
func TestHandles(t *testing.T) {
	class, other := "x", "y"
	for name, c := range map[string]struct {
		class     *string
		finalizer bool
		want      bool
	}{
		"MRK-4/its class": {&class, false, true}, "MRK-5/its finalizer": {&other, true, true}, "MRK-4/both": {&class, true, true}, "MRK-4/neither": {&other, false, false},
	} {
		mr := &resourcesv1alpha1.ManagedResource{}
		mr.Spec.Class = c.class
		if c.finalizer {
			mr.Finalizers = []string{Class(class).Finalizer()}
		}
		expect.Equal(t, Class(class).Handles(mr), c.want, "%s", name)
	}
}

// TestRefused: an answer with a code of a client's error proves that nothing was done, but for a timeout.
func TestRefused(t *testing.T) {
	for code, want := range map[int32]bool{200: false, 399: false, 400: true, 403: true, 407: true, 408: false, 409: true, 422: true, 499: true, 500: false, 503: false} {
		err := fmt.Errorf("writing: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}})
		expect.Equal(t, Refused(err), want, "MRB-3: %d proves that nothing was done", code)
	}
	expect.True(t, !Refused(errors.New("broken pipe")) && !Refused(nil), "MRB-3: an error without an answer proves nothing")
}

// TestTentativeEntries: a planned entry is told from a record, and is otherwise what the record is (MR-30).
func TestTentativeEntries(t *testing.T) {
	record := resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{Name: "a", UID: "u"}}
	entry := AsTentative(record)
	expect.True(t, !Tentative(&record) && Tentative(&entry),
		"MR-30: the record is planned: %v, the planned entry: %v", Tentative(&record), Tentative(&entry))
	entry.FieldPath = ""
	expect.DeepEqual(t, entry, record, "MR-30")
}

// TestConditionChanges: a change reports whether it changed anything: the status is written only then (MRS-2, MRS-3).
func TestConditionChanges(t *testing.T) {
	then, now := metav1.Unix(100, 0), time.Unix(200, 0)
	applied := resourcesv1alpha1.Condition{Type: resourcesv1alpha1.ResourcesApplied, Status: "True", Reason: "r", Message: "m", LastTransitionTime: then, LastUpdateTime: then}
	same := ConditionChange{resourcesv1alpha1.ResourcesApplied, "True", "r", "m"}
	for name, c := range map[string]struct {
		before            Conditions
		change            ConditionChange
		transited, edited bool
		isNew             bool
	}{
		"MRS-3/nothing":            {Conditions{applied}, same, false, false, false},
		"MRS-2/another status":     {Conditions{applied}, ConditionChange{same.Type, "False", "r", "m"}, true, false, false},
		"MRS-2/another reason":     {Conditions{applied}, ConditionChange{same.Type, "True", "s", "m"}, false, true, false},
		"MRS-2/another message":    {Conditions{applied}, ConditionChange{same.Type, "True", "r", "n"}, false, true, false},
		"MRS-2/no condition":       {nil, same, true, true, true},
		"MRS-2/as it begins":       {nil, ConditionChange{same.Type, "Unknown", resourcesv1alpha1.ReasonConditionInitialized, messageInitialized}, true, true, true},
		"MRS-2/codes are not ours": {Conditions{{Type: same.Type, Status: "True", Reason: "r", Message: "m", Codes: []resourcesv1alpha1.ErrorCode{"x"}, LastTransitionTime: then, LastUpdateTime: then}}, same, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			after, changed := c.before.With(now, c.change)
			expect.Equal(t, changed, (c.transited || c.edited), "it is changed")
			got := after.Get(same.Type)
			expect.True(t, got.Status == c.change.Status && got.Reason == c.change.Reason && got.Message == c.change.Message && len(got.Codes) == 0,
				"got %+v", got)
			transited := got.LastTransitionTime.Time.Equal(now)
			expect.True(t, transited == c.transited && got.LastUpdateTime.Time.Equal(now) == c.edited, "times: %+v", got)
			if c.isNew == (len(after) == len(c.before)) || c.before.Status(same.Type) != "" == c.isNew {
				t.Errorf("before %+v, after %+v", c.before, after)
			}
		})
	}
}

// TestInvalidationOfReleases: a release of orphans that failed stays told while the same content is tried (MRS-5, MRB-19).
func TestInvalidationOfReleases(t *testing.T) {
	before := Conditions{{Type: resourcesv1alpha1.ResourcesApplied, Status: "False", Reason: resourcesv1alpha1.ReasonReleaseOfOrphansFailed, Message: "m"}}
	for same, want := range map[bool]ConditionChange{
		true:  {resourcesv1alpha1.ResourcesApplied, "False", resourcesv1alpha1.ReasonReleaseOfOrphansFailed, "m"},
		false: {resourcesv1alpha1.ResourcesApplied, "Progressing", resourcesv1alpha1.ReasonApplyProgressing, MessageApplying},
	} {
		got := before.Invalidation(same)
		expect.True(t, slices.Contains(got, want), "MRB-19: the same content: %v, got %+v, want %+v", same, got, want)
	}
}
