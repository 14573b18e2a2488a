package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"

	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// kind has the resource of a kind's objects.
type kind struct{ apimeta.RESTMapping }

func (k *kind) namespaced() bool { return k.Scope.Name() == apimeta.RESTScopeNameNamespace }

// within returns the namespace of an object of the kind; "" if objects of the kind have none.
func (k *kind) within(namespace string) string {
	if !k.namespaced() {
		return ""
	}
	return namespace
}

func (k *kind) scope() plan.Scope {
	if k.namespaced() {
		return plan.ScopeNamespaced
	}
	return plan.ScopeCluster
}

// resolve returns the kind that an argument names, as in kubectl: a resource, a singular or a short name, alone or
// with .GROUP or .VERSION.GROUP.
func (r *reader) resolve(ctx context.Context, argument string) (*kind, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(argument))
	candidates := []schema.GroupVersionResource{partial.WithVersion("")}
	if full != nil {
		candidates = append(candidates, *full)
	}
	for _, candidate := range candidates {
		gvk, err := r.mapper.KindForWithContext(ctx, candidate)
		if apimeta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding the kind %s: %w", argument, err)
		}
		return r.served(ctx, gvk)
	}
	return nil, fmt.Errorf("the cluster serves no kind %q", argument)
}

// served returns the resource of a kind, nil if the cluster does not serve the kind in this version.
func (r *reader) served(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	mapping, err := r.mapper.RESTMappingWithContext(ctx, gvk.GroupKind(), gvk.Version)
	if err == nil {
		return &kind{*mapping}, nil
	}
	if !apimeta.IsNoMatchError(err) {
		return nil, err
	}
	// Discovery leaves out a group whose API server does not respond.
	_, err = r.discovery.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
	if errors.Is(err, memory.ErrCacheNotFound) {
		err = nil
	}
	return nil, err
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definitionOf reads the definition of a custom kind; nil if it has none, or it may not be read.
func (r *reader) definitionOf(ctx context.Context, k *kind) (*unstructured.Unstructured, error) {
	definition, err := r.get(ctx, definitions, "", k.Resource.GroupResource().String())
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return definition, err
}
