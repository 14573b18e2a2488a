package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// read reads and decodes the Secrets in the order of secretRefs. It stops at the first unreadable Secret (MR-7), and
// when the Secrets exceed the limits of a ManagedResource, so that decoding fails.
func read(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	reading *source.Reading) (decoded decode.Result, versions map[string]string, err error) {
	var sources decode.Sources
	versions = make(map[string]string, len(mr.Spec.SecretRefs))
	for _, ref := range mr.Spec.SecretRefs {
		key := types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}
		data, version, err := reading.Get(ctx, key)
		if err != nil {
			return decode.Result{}, nil, err
		}
		versions[ref.Name] = version
		if !sources.Add(decode.Source{Secret: key, Data: data}) {
			break
		}
	}
	decoded, err = decode.Decode(ctx, sources.All)
	return decoded, versions, err
}
