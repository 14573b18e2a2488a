package steps

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// Locations reads objects of inventories where they are now.
type Locations struct{ Target *target.Client }

// Find reads the object of an entry, in the version and the scope in which its kind is served now: a change of either
// does not make it another object (MRD-13).
func (p Locations) Find(ctx context.Context,
	ref *resourcesv1alpha1.ObjectReference) (live *unstructured.Unstructured, namespace string, err error) {
	gvk, namespace, err := p.locationOf(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	live, err = p.Target.Get(ctx, gvk, namespace, ref.Name)
	if !target.Gone(err) {
		return live, namespace, err
	}
	now, otherNamespace, locationErr := p.locationOf(ctx, ref) // The answer may have shown another version or scope.
	if locationErr != nil || now == gvk && otherNamespace == namespace {
		return nil, namespace, cmp.Or(locationErr, err)
	}
	live, err = p.Target.Get(ctx, now, otherNamespace, ref.Name)
	return live, otherNamespace, err
}

// locationOf returns the present location of an entry's object: the entry may be older than the kind's present scope
// and versions. If the kind is namespaced now, an entry without a namespace means the namespace "default", as it does
// wherever entries are compared. The origin names the owner of the object there.
func (p Locations) locationOf(ctx context.Context,
	ref *resourcesv1alpha1.ObjectReference) (gvk schema.GroupVersionKind, namespace string, err error) {
	gvk, scope, err := p.kindOf(ctx, ref)
	switch {
	case err != nil:
		return gvk, "", err
	case scope == plan.ScopeCluster:
		return gvk, "", nil
	case scope == plan.ScopeNamespaced:
		return gvk, cmp.Or(ref.Namespace, metav1.NamespaceDefault), nil
	}
	return gvk, ref.Namespace, nil
}

// kindOf returns the version in which the kind of an entry is served now, and whether the kind is namespaced.
func (p Locations) kindOf(ctx context.Context,
	ref *resourcesv1alpha1.ObjectReference) (schema.GroupVersionKind, plan.Scope, error) {
	gvk, err := p.Target.Served(ctx, ref.GroupVersionKind())
	if err != nil {
		return gvk, plan.ScopeUnknown, err
	}
	scope, err := p.Target.Scope(ctx, gvk)
	return gvk, scope, err
}
