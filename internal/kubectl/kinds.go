package kubectl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-project/espalier/internal/kinds"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// kind has the resource of a kind's objects.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
	// names are the singular and the short names by which the cluster knows a custom kind.
	names []string
	// definition is the CustomResourceDefinition, if that was read.
	definition *unstructured.Unstructured
}

func (k *kind) at() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.resource) }

// within returns the namespace of an object of the kind; "" if objects of the kind have none.
func (k *kind) within(namespace string) string {
	if !k.namespaced {
		return ""
	}
	return namespace
}

func (k *kind) in(version string) *kind {
	other := *k
	other.Version = version
	return &other
}

func ofBuiltin(of *kinds.Kind) *kind {
	return &kind{GroupVersionKind: of.GroupVersionKind, resource: of.Resource, namespaced: of.Namespaced}
}

// known are the kinds of a cluster, asked for at most once.
type known struct {
	mu         sync.Mutex
	discovered []*kind
}

// resolve finds the kind that an argument names: KIND, KIND.GROUP or KIND.VERSION.GROUP. Kubernetes' own kinds cost no request; a custom one with
// its group costs that for its definition, and without it that for all kinds.
func (r *reader) resolve(ctx context.Context, argument string) (*kind, error) {
	word, version, group := splitKind(argument)
	if of := kinds.Find(word, group, group != "" || strings.Contains(argument, ".")); of != nil {
		k := ofBuiltin(of)
		k.Version = cmp.Or(version, k.Version)
		return k, nil
	}
	if group != "" {
		if k := r.defined(ctx, word, version, group); k != nil {
			return k, nil
		}
	}
	all, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	return choose(all, argument, word, version, group)
}

// splitKind splits KIND, KIND.GROUP or KIND.VERSION.GROUP.
func splitKind(argument string) (word, version, group string) {
	word, rest, _ := strings.Cut(argument, ".")
	if first, group, found := strings.Cut(rest, "."); found && isVersion(first) {
		return word, first, group
	}
	return word, "", rest
}

func isVersion(text string) bool {
	return len(text) > 1 && text[0] == 'v' && text[1] >= '0' && text[1] <= '9'
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// defined reads the CustomResourceDefinition of a kind, if its name can be guessed and it may be read.
func (r *reader) defined(ctx context.Context, word, wanted, group string) *kind {
	plural := strings.ToLower(word)
	if !strings.HasSuffix(plural, "s") || strings.HasSuffix(plural, "ss") {
		guessed, _ := apimeta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: plural})
		plural = guessed.Resource
	}
	definition, err := r.get(ctx, definitions, "", plural+"."+group)
	if err != nil {
		return nil
	}
	return kindOf(definition, wanted)
}

// kindOf returns the kind that a CustomResourceDefinition defines, in the wanted version or in the API servers'
// preferred one.
func kindOf(object *unstructured.Unstructured, wanted string) *kind {
	definition, err := typed[apiextensionsv1.CustomResourceDefinition](object)
	if err != nil {
		return nil
	}
	best := ""
	for _, v := range definition.Spec.Versions {
		isNewer := best == "" || version.CompareKubeAwareVersionStrings(v.Name, best) > 0
		if v.Served && isNewer && (wanted == "" || wanted == v.Name) {
			best = v.Name
		}
	}
	if best == "" {
		return nil
	}
	gvk := schema.GroupVersionKind{Group: definition.Spec.Group, Version: best, Kind: definition.Spec.Names.Kind}
	return &kind{
		GroupVersionKind: gvk, resource: definition.Spec.Names.Plural, definition: object,
		namespaced: definition.Spec.Scope != apiextensionsv1.ClusterScoped,
	}
}

// aggregated asks for all groups with their kinds in one answer.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// discover returns all kinds that have a group, asked for once.
func (r *reader) discover(ctx context.Context) ([]*kind, error) {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if r.known.discovered != nil {
		return r.known.discovered, nil
	}
	content, err := r.raw.Get().AbsPath("/apis").SetHeader("Accept", aggregated).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("asking for the kinds of the cluster: %w", err)
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(content, &groups); err != nil {
		return nil, fmt.Errorf("asking for the kinds of the cluster: %w", err)
	}
	if groups.Kind != "APIGroupDiscoveryList" {
		return nil, errors.New("asking for the kinds of the cluster: it has no aggregated discovery, which Kubernetes has from version 1.27 on")
	}
	for _, group := range groups.Items {
		for _, v := range group.Versions {
			for _, resource := range v.Resources {
				if resource.ResponseKind == nil {
					continue
				}
				gvk := schema.GroupVersionKind{Group: cmp.Or(resource.ResponseKind.Group, group.Name), Version: cmp.Or(resource.ResponseKind.Version, v.Version), Kind: resource.ResponseKind.Kind}
				r.known.discovered = append(r.known.discovered, &kind{GroupVersionKind: gvk, resource: resource.Resource,
					namespaced: resource.Scope == apidiscoveryv2.ScopeNamespace, names: append(resource.ShortNames, resource.SingularResource)})
			}
		}
	}
	return r.known.discovered, nil
}

// choose returns the kind that a word means; it is an error if it means several, or none.
func choose(all []*kind, argument, word, version, group string) (*kind, error) {
	var found []*kind
	for _, k := range all {
		named := slices.ContainsFunc(slices.Concat(k.names, []string{k.Kind, k.resource}), func(name string) bool { return strings.EqualFold(name, word) })
		if named && (group == "" || k.Group == group) && (version == "" || k.Version == version) &&
			!slices.ContainsFunc(found, func(f *kind) bool { return f.GroupKind() == k.GroupKind() }) { // The preferred version comes first.
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("the cluster serves no kind %q", argument)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, k := range found {
		names[i] = k.GroupKind().String()
	}
	return nil, fmt.Errorf("several kinds are named like %q: name one of %s", argument, strings.Join(names, ", "))
}

// definitionOf reads the definition of a custom kind; nil if it has none, or it may not be read.
func (r *reader) definitionOf(ctx context.Context, k *kind) (*unstructured.Unstructured, error) {
	if k.definition != nil {
		return k.definition, nil
	}
	definition, err := r.get(ctx, definitions, "", k.resource+"."+k.Group)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return definition, err
}
func (k *kind) scope() plan.Scope {
	if k.namespaced {
		return plan.ScopeNamespaced
	}
	return plan.ScopeCluster
}

// served returns where a kind of a manifest is served, nil if it is not.
func (r *reader) served(ctx context.Context, gvk schema.GroupVersionKind) (*kind, error) {
	if of := kinds.Builtin()[gvk.GroupKind()]; of != nil {
		return ofBuiltin(of).in(gvk.Version), nil
	}
	all, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(k *kind) bool { return k.GroupVersionKind == gvk })
	if at < 0 {
		return nil, nil
	}
	return all[at], nil
}
