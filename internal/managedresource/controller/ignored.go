package controller

import (
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// ignoredSince returns the time since which a ManagedResource is ignored, from its condition (MRS-12); the zero time
// if it is not.
func ignoredSince(mr *resourcesv1alpha1.ManagedResource) time.Time {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	if !meta.Ignored(mr) || condition == nil || condition.Reason != resourcesv1alpha1.ReasonIgnored {
		return time.Time{}
	}
	// LastTransitionTime may be older: the status need not change when a ManagedResource is ignored, but the reason
	// does.
	return condition.LastUpdateTime.Time
}

// ignoredOf counts the objects that are not kept in sync with their manifests, because of the annotation ignore
// (MR-30) or the mode Ignore (MRO-1).
func ignoredOf(objects []decode.Object) (n int) {
	for _, object := range objects {
		if object.Released() || meta.Truthy(object.GetAnnotations(), resourcesv1alpha1.AnnotationIgnore) {
			n++
		}
	}
	return n
}

// ignoredSince returns the time, in seconds, at which this process first found ignored objects in the
// ManagedResource; zero if none is. The time is not stored in the API.
func (r *normalRun) ignoredSince() int64 {
	switch last := r.taken.Last; {
	case r.content.ignored == 0:
		return 0
	case last != nil && last.IgnoredSince != 0:
		return last.IgnoredSince
	}
	return r.reconciler.Clock.Now().Unix()
}
