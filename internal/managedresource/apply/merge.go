package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// inherit sets the merge options for an object that is about to be written. If the autoscaler of the object was
// deleted while another process led, the replicas are left alone for as long as that process would have left them
// alone.
func (a *attempt) inherit(ctx context.Context) error {
	autoscalers := a.Watches.Autoscalers()
	if !a.isScalable(a.desired) || a.options.HorizontallyScaled || !autoscalers.InStartupGrace() ||
		replicasOf(a.merge(a.live)) == replicasOf(a.live) {
		return nil
	}
	written := a.live
	if len(written.GetManagedFields()) == 0 { // It is a cached object from a list, without managed fields.
		var err error
		if written, err = a.get(ctx, a.desired); err != nil {
			return err
		}
	}
	if autoscalers.Inherits(a.desired.Ref.ID, written) {
		a.options.HorizontallyScaled = true
		a.digest = desiredDigest(a.desired, a.options)
	}
	return nil
}

func replicasOf(object *unstructured.Unstructured) int64 {
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return replicas
}
