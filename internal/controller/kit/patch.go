package kit

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patcher writes patches.
type Patcher interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Patch writes the differences between two versions of an object, and nothing if they are equal. It fails with a
// conflict if the object in the cluster has changed. It decodes the response into the second version.
func Patch(ctx context.Context, c Patcher, from, to client.Object) error {
	if equality.Semantic.DeepEqual(from, to) {
		return nil
	}
	return c.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
}
