package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// inherit returns the merge options for an object that is about to be written. If an autoscaler scaled the object and
// went while another process led, the replicas are left alone for as long as that process would leave them. digest is
// the digest of the desired state then; zero if nothing is inherited.
func (a *applier) inherit(ctx context.Context, desired *plan.Desired, live *unstructured.Unstructured,
	options merge.Options) (_ merge.Options, digest uint64, _ error) {
	autoscalers := a.Watches.Autoscalers()
	if !a.isScalable(desired) || options.HorizontallyScaled || !autoscalers.InStartupGrace() ||
		replicasOf(merge.Merge(desired, live, options)) == replicasOf(live) {
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
