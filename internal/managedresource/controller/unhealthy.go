package controller

import (
	"k8s.io/client-go/tools/cache"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// unhealthy is a condition with an undesired status: the label values of its series, in order, and the time of its
// last transition.
type unhealthy struct {
	labels [4]string
	since  float64
}

// unhealthyOf returns the conditions of a ManagedResource with an undesired status. It omits conditions that are still
// unknown, and those that follow from others (MRS-15), so that there are as many series as failures.
func unhealthyOf(mr *resourcesv1alpha1.ManagedResource) []unhealthy {
	var all []unhealthy
	for _, c := range mr.Status.Conditions {
		want := resourcesv1alpha1.ConditionTrue
		switch c.Type {
		case resourcesv1alpha1.ResourcesProgressing:
			want = resourcesv1alpha1.ConditionFalse
		case resourcesv1alpha1.Ready, resourcesv1alpha1.Reconciling, resourcesv1alpha1.Stalled:
			continue
		}
		if c.Status != want && c.Status != resourcesv1alpha1.ConditionUnknown {
			all = append(all, unhealthy{[4]string{mr.Namespace, mr.Name, string(c.Type), c.Reason},
				float64(c.LastTransitionTime.Unix())})
		}
	}
	return all
}

// Follow returns a handler for a cache of ManagedResources that updates the series of the unhealthy and the ignored
// ones. ManagedResources of other classes have no series.
func (m *Metrics) Follow(class meta.Class) cache.ResourceEventHandler {
	of := func(object any) *resourcesv1alpha1.ManagedResource {
		if mr, ok := object.(*resourcesv1alpha1.ManagedResource); ok && class.Handles(mr) {
			return mr
		}
		return nil
	}
	replace := func(before, after *resourcesv1alpha1.ManagedResource) {
		if before != nil {
			for _, u := range unhealthyOf(before) {
				m.unhealthy.DeleteLabelValues(u.labels[:]...)
			}
			m.ignored.DeleteLabelValues(before.Namespace, before.Name)
		}
		if after == nil {
			return
		}
		for _, u := range unhealthyOf(after) {
			m.unhealthy.WithLabelValues(u.labels[:]...).Set(u.since)
		}
		if since := ignoredSince(after); !since.IsZero() {
			m.ignored.WithLabelValues(after.Namespace, after.Name).Set(float64(since.Unix()))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { replace(nil, of(object)) },
		UpdateFunc: func(before, after any) { replace(of(before), of(after)) },
		DeleteFunc: func(object any) {
			if lost, is := object.(cache.DeletedFinalStateUnknown); is {
				object = lost.Obj
			}
			replace(of(object), nil)
		},
	}
}
