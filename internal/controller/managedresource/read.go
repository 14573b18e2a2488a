package managedresource

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/manifest"
)

// read reads and decodes the Secrets in the order of secretRefs; the first unreadable one ends it (MR-7).
func (r *Reconciler) read(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (manifest.Result, map[string]string, error) {
	sources := make([]manifest.Source, 0, len(mr.Spec.SecretRefs))
	versions := make(map[string]string, len(mr.Spec.SecretRefs))
	for _, ref := range mr.Spec.SecretRefs {
		key := types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}
		data, version, err := r.Secrets.Get(ctx, key)
		if err != nil {
			return manifest.Result{}, nil, err
		}
		sources = append(sources, manifest.Source{Secret: key, Data: data})
		versions[ref.Name] = version
	}
	return manifest.Decode(sources), versions, nil
}
