package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// read reads and decodes the Secrets in the order of secretRefs; the first unreadable one ends it (MR-7). So do more than a
// ManagedResource may have, which decoding refuses.
func read(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reading *source.Reading) (decoded decode.Result, versions map[string]string, err error) {
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

// basis is what a run is made from besides its ManagedResource.
type basis struct {
	// confirmed makes sure, before the first write or deletion, that the ManagedResource had all of it at one moment.
	confirmed func() error
	// overtaken says whether a watch told of something newer since.
	overtaken func() bool
	// unchanged asks the API server for the same, for when the watch may have stood still: it returns errMoved if there is something newer.
	unchanged func(context.Context) error
	// keys are the objects that it is to apply.
	keys []plan.Key
	// at is when the API server was asked whether the ManagedResource still is what the run is about; zero if it was not.
	at time.Time
}

// nothing is the basis of a run that needs nothing else.
var nothing = basis{
	confirmed: func() error { return nil }, overtaken: func() bool { return false }, unchanged: func(context.Context) error { return nil },
}

// basisOf is what was read for a ManagedResource, in these versions, in a run that began with what pass says.
func (r *Reconciler) basisOf(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reading *source.Reading, versions map[string]string, began pass) basis {
	return basis{
		confirmed: once(ctx, func() error {
			together, err := reading.Confirm(ctx)
			if err != nil {
				return fmt.Errorf("reading the Secrets once more: %w", err)
			}
			if !together {
				return errMoved
			}
			return nil
		}),
		overtaken: func() bool { return r.passes.toldOfOthers(mr, versions, began) },
		unchanged: func(ctx context.Context) error {
			for name, read := range versions {
				version, err := r.Secrets.Version(ctx, types.NamespacedName{Namespace: mr.Namespace, Name: name})
				if err != nil {
					return fmt.Errorf("reading the Secrets once more: %w", err)
				}
				if version != read {
					return errMoved
				}
			}
			return nil
		},
	}
}
