package controller

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// merge returns the desired form of a live object, with the origin of another ManagedResource that keeps it, if there
// is one.
func (a *applier) merge(desired *plan.Desired, live *unstructured.Unstructured, options merge.Options,
	keptBy objects.Owner, origin string) *unstructured.Unstructured {
	if desired.CreateOnly && keptBy != (objects.Owner{}) {
		return live // Its description is from the other ManagedResource.
	}
	options.Origin = cmp.Or(origin, options.Origin)
	return merge.Merge(desired, live, options)
}

// inherit returns the merge options for an object that is about to be written. If an autoscaler scaled the object and
// went while another process led, the replicas are left alone for as long as that process would leave them. digest is
// the digest of the desired state then; zero if nothing is inherited.
func (a *applier) inherit(ctx context.Context, desired *plan.Desired, live *unstructured.Unstructured,
	options merge.Options, keptBy objects.Owner, origin string) (_ merge.Options, digest uint64, _ error) {
	autoscalers := a.Watches.Autoscalers()
	if !a.isScalable(desired) || options.HorizontallyScaled || !autoscalers.InStartupGrace() ||
		replicasOf(a.merge(desired, live, options, keptBy, origin)) == replicasOf(live) {
		return options, 0, nil
	}
	written := live
	if len(live.GetManagedFields()) == 0 { // It is from a list, which keeps no managed fields.
		var err error
		if written, err = a.get(ctx, desired); err != nil {
			return options, 0, err
		}
	}
	if !autoscalers.Inherits(desired.Ref.ID, written) {
		return options, 0, nil
	}
	options.HorizontallyScaled = true
	return options, desiredDigest(desired, options), nil
}

func replicasOf(object *unstructured.Unstructured) int64 {
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return replicas
}
