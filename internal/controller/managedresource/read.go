package managedresource

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/manifest"
)

// read reads and decodes the Secrets in the order of secretRefs; the first unreadable one ends it (MR-7). So do more than a
// ManagedResource may have, which decoding refuses.
func (r *Reconciler) read(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (manifest.Result, map[string]string, error) {
	var sources manifest.Sources
	versions := make(map[string]string, len(mr.Spec.SecretRefs))
	for _, ref := range mr.Spec.SecretRefs {
		key := types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}
		data, version, err := r.Secrets.Get(ctx, key)
		if err != nil {
			return manifest.Result{}, nil, err
		}
		versions[ref.Name] = version
		if !sources.Add(manifest.Source{Secret: key, Data: data}) {
			break
		}
	}
	decoded, err := manifest.Decode(ctx, sources.All)
	return decoded, versions, err
}
