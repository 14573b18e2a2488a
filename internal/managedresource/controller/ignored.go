package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// ignoredSince returns the time since which a ManagedResource is ignored, from its condition (MRS-12); the zero time
// if it is not.
func ignoredSince(mr *resourcesv1alpha1.ManagedResource) time.Time {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	if !meta.Ignored(mr) || condition == nil || condition.Reason != resourcesv1alpha1.ReasonIgnored {
		return time.Time{}
	}
	// The status of the condition need not change when a ManagedResource is ignored, its reason does.
	return condition.LastUpdateTime.Time
}

// ignoredOf counts the objects of manifests that are not kept as the manifests say: with the annotation ignore (MR-30)
// or in mode Ignore (MRO-1).
func ignoredOf(objects []decode.Object) (n int) {
	for _, object := range objects {
		if object.Released() || meta.Truthy(object.GetAnnotations(), resourcesv1alpha1.AnnotationIgnore) {
			n++
		}
	}
	return n
}

// ignoredObjects are the series of the ManagedResources with ignored objects. No API object has the time since which
// objects are ignored.
type ignoredObjects struct {
	count, since *prometheus.GaugeVec

	mu    *sync.Mutex
	known map[objects.Owner]struct{}
}

func newIgnoredObjects() ignoredObjects {
	return ignoredObjects{
		count: gauges("espalier_managedresource_ignored_objects",
			"Manifests of a ManagedResource whose annotations have them ignored.",
			labelNamespace, "name"),
		since: gauges("espalier_managedresource_ignored_objects_since_timestamp_seconds",
			"When this process first found ignored manifests in a ManagedResource.",
			labelNamespace, "name"),
		mu: &sync.Mutex{}, known: map[objects.Owner]struct{}{},
	}
}

// are records the number of ignored objects of a ManagedResource.
func (x ignoredObjects) are(owner objects.Owner, n int, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, found := x.known[owner]
	switch {
	case n == 0 && found:
		delete(x.known, owner)
		x.count.DeleteLabelValues(owner.Namespace, owner.Name)
		x.since.DeleteLabelValues(owner.Namespace, owner.Name)
	case n > 0:
		x.count.WithLabelValues(owner.Namespace, owner.Name).Set(float64(n))
		if !found {
			x.known[owner] = struct{}{}
			x.since.WithLabelValues(owner.Namespace, owner.Name).Set(float64(now.Unix()))
		}
	}
}
