package managedresource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/manifest"
)

// read reads and decodes the Secrets in the order of secretRefs; the first unreadable one ends it (MR-7). So do more than a
// ManagedResource may have, which decoding refuses. told are the versions that a watch told of.
func (r *Reconciler) read(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (decoded manifest.Result, versions, told map[string]string, err error) {
	var sources manifest.Sources
	versions, told = make(map[string]string, len(mr.Spec.SecretRefs)), map[string]string{}
	for _, ref := range mr.Spec.SecretRefs {
		key := types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}
		secret, err := r.Secrets.Get(ctx, key)
		if err != nil {
			return manifest.Result{}, nil, nil, err
		}
		versions[ref.Name] = secret.Version
		if secret.Told {
			told[ref.Name] = secret.Version
		}
		if !sources.Add(manifest.Source{Secret: key, Data: secret.Data}) {
			break
		}
	}
	decoded, err = manifest.Decode(ctx, sources.All)
	return decoded, versions, told, err
}

// confirmSecrets makes sure that what a watch told of Secrets is not from before a form of a ManagedResource, which may name them only since then.
func (r *Reconciler) confirmSecrets(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, told map[string]string) error {
	for name, version := range told {
		is, err := r.Secrets.IsAsOf(ctx, types.NamespacedName{Namespace: mr.Namespace, Name: name}, version, mr.ResourceVersion)
		if err != nil {
			return fmt.Errorf("reading secret %s: %w", name, err)
		}
		if !is {
			return errMoved
		}
	}
	return nil
}
