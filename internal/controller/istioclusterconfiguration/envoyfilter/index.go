package envoyfilter

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/controller/namespaced"
	"github.com/espalier-project/espalier/internal/externalapi/istio"
)

// Labels of namespaces with ingress gateways (ICC-2), and of EnvoyFilters.
const (
	roleLabel     = "gardener.cloud/role"
	roleIngress   = "istio-ingress"
	exposureLabel = "handler.exposureclass.gardener.cloud/name"

	// LabelManagedBy is the label of this controller's EnvoyFilters (ICC-10).
	LabelManagedBy = "resources.gardener.cloud/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "istio-cluster-configuration"
	suffix    = "-cluster-configuration"
)

// Kind is a kind of objects whose events an index receives.
type Kind string

// The kinds of an index.
const (
	Services   Kind = "Service"
	Namespaces Kind = "Namespace"
	Rules      Kind = "DestinationRule"
	Filters    Kind = "EnvoyFilter"
)

var kinds = []Kind{Services, Namespaces, Rules, Filters}

// Index has all DestinationRules, Services and Namespaces, and the EnvoyFilters of this controller.
//
// Invariant: the result of Decide is a function of the last event of each object. Decide returns nothing before the
// first lists of all kinds are complete. Each method that receives an event returns the source namespaces whose
// decision may have changed.
type Index struct {
	// watched are the namespaces whose events the index receives; none means all.
	watched []string

	mu         sync.Mutex
	complete   map[Kind]bool
	rules      namespaced.Map[*Rule]
	services   map[types.NamespacedName]*Service
	namespaces map[string]*namespace
	filters    namespaced.Map[*Existing] // by source namespace and namespace
}

type namespace struct {
	uid         types.UID
	ingress     bool
	terminating bool
}

// Existing is an EnvoyFilter of this controller in the cluster.
type Existing struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	digest          [sha256.Size]byte
}

// NewIndex returns an empty index.
func NewIndex(watched []string) *Index {
	return &Index{
		watched: watched, complete: map[Kind]bool{}, rules: namespaced.Map[*Rule]{}, services: map[types.NamespacedName]*Service{},
		namespaces: map[string]*namespace{}, filters: namespaced.Map[*Existing]{},
	}
}

// Complete records that the first list of a kind has been delivered.
func (x *Index) Complete(kind Kind) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete[kind] = true
	return x.allLocked()
}

// Forget empties the index when all watches end.
func (x *Index) Forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.complete)
	clear(x.rules)
	clear(x.services)
	clear(x.namespaces)
	clear(x.filters)
}

func (x *Index) isCompleteLocked() bool {
	return !slices.ContainsFunc(kinds, func(k Kind) bool { return !x.complete[k] })
}

// allLocked returns all namespaces that have rules or filters.
func (x *Index) allLocked() []string {
	if !x.isCompleteLocked() {
		return nil
	}
	all := map[string]bool{}
	for namespace := range x.rules {
		all[namespace] = true
	}
	for namespace := range x.filters {
		all[namespace] = true
	}
	return slices.Collect(maps.Keys(all))
}

// SetRule records a DestinationRule that is new or changed (ICC-3: its host, exportTo or traffic policy).
func (x *Index) SetRule(r *Rule) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if reflect.DeepEqual(x.rules[r.Namespace][r.Name], r) {
		return nil
	}
	x.rules.Set(r.Namespace, r.Name, r)
	return []string{r.Namespace}
}

// Has reports whether a list has an object.
type Has = func(namespace, name string) bool

// Remove records that an object was deleted, or is no longer relevant.
func (x *Index) Remove(kind Kind, namespace, name string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.removeLocked(kind, types.NamespacedName{Namespace: namespace, Name: name})
}

// Retain removes the objects of a kind in a namespace (in all if it is empty) that a list no longer has.
func (x *Index) Retain(kind Kind, in string, has Has) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var changed []string
	for _, key := range x.keysLocked(kind) {
		if namespaced.In(in, key.Namespace) && !has(key.Namespace, key.Name) {
			changed = append(changed, x.removeLocked(kind, key)...)
		}
	}
	if kind == Namespaces {
		return x.allLocked()
	}
	return changed
}

func (x *Index) removeLocked(kind Kind, key types.NamespacedName) []string {
	switch kind {
	case Rules:
		x.rules.Delete(key.Namespace, key.Name)
		return []string{key.Namespace}
	case Services:
		delete(x.services, key)
		return x.aboutLocked(key)
	case Filters:
		source, named := strings.CutSuffix(key.Name, suffix)
		if !named {
			return nil
		}
		x.filters.Delete(source, key.Namespace)
		return []string{source}
	}
	old := x.namespaces[key.Name]
	if delete(x.namespaces, key.Name); old != nil && old.ingress {
		return x.reachingLocked(key.Name)
	}
	return nil // ICC-4: filters of a source namespace are deleted with it.
}

func (x *Index) keysLocked(kind Kind) (all []types.NamespacedName) {
	switch kind {
	case Rules:
		return x.rules.Keys()
	case Services:
		return slices.Collect(maps.Keys(x.services))
	case Filters:
		for _, key := range x.filters.Keys() {
			all = append(all, types.NamespacedName{Namespace: key.Name, Name: key.Namespace + suffix})
		}
		return all
	}
	for name := range x.namespaces {
		all = append(all, types.NamespacedName{Name: name})
	}
	return all
}

// SetService records a Service that is new or changed (ICC-3: its ports, or its exports).
func (x *Index) SetService(o *corev1.Service) []string {
	s := ServiceOf(o)
	x.mu.Lock()
	defer x.mu.Unlock()
	if reflect.DeepEqual(x.services[s.NamespacedName], s) {
		return nil
	}
	x.services[s.NamespacedName] = s
	return x.aboutLocked(s.NamespacedName)
}

// aboutLocked returns the namespaces with rules for a Service.
func (x *Index) aboutLocked(service types.NamespacedName) []string {
	if !x.isCompleteLocked() {
		return nil
	}
	var all []string
	for namespace, rules := range x.rules {
		for _, r := range rules {
			if r.Service == service {
				all = append(all, namespace)
				break
			}
		}
	}
	return all
}

// SetNamespace records a Namespace that is new or changed.
func (x *Index) SetNamespace(o metav1.Object) []string {
	_, exposed := o.GetLabels()[exposureLabel]
	fresh := namespace{o.GetUID(), exposed || o.GetLabels()[roleLabel] == roleIngress, o.GetDeletionTimestamp() != nil}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.namespaces[o.GetName()]
	if old != nil && *old == fresh {
		return nil
	}
	x.namespaces[o.GetName()] = &fresh
	if fresh.ingress || old != nil && old.ingress {
		return append(x.reachingLocked(o.GetName()), o.GetName())
	}
	return []string{o.GetName()}
}

// reachingLocked returns the source namespaces whose rules reach gateways in a namespace, and those that have a
// filter there (ICC-3: rules that export to the namespace by name, to all namespaces, or to their own).
func (x *Index) reachingLocked(gateways string) []string {
	if !x.isCompleteLocked() {
		return nil
	}
	var all []string
	for source, rules := range x.rules {
		for _, r := range rules {
			if slices.Contains(r.ExportTo, "*") || slices.Contains(r.ExportTo, gateways) || source == gateways && slices.Contains(r.ExportTo, ".") {
				all = append(all, source)
				break
			}
		}
	}
	for source, filters := range x.filters {
		if filters[gateways] != nil && !slices.Contains(all, source) {
			all = append(all, source)
		}
	}
	return all
}

// sourceOf returns the source namespace of an EnvoyFilter, or an empty name if the filter is not this controller's:
// it requires the label, and the source namespace as owner.
func sourceOf(o *istio.EnvoyFilter) string {
	source, named := strings.CutSuffix(o.Name, suffix)
	if !named || o.Labels[LabelManagedBy] != ManagedBy {
		return ""
	}
	for _, owner := range o.OwnerReferences {
		if owner.Kind == "Namespace" && owner.Name == source && owner.Controller != nil && *owner.Controller {
			return source
		}
	}
	return ""
}

// SetFilter records an EnvoyFilter with the label. One with another owner or name is not this controller's.
func (x *Index) SetFilter(o *istio.EnvoyFilter) []string {
	source := sourceOf(o)
	if source == "" {
		return x.Remove(Filters, o.Namespace, o.Name)
	}
	e := &Existing{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, digest: digest(o.Labels, o.OwnerReferences, o.Spec.Raw)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.filters.Set(source, o.Namespace, e)
	return []string{source}
}

// digest returns a digest of all managed fields of a filter.
func digest(labels map[string]string, owners []metav1.OwnerReference, spec []byte) [sha256.Size]byte {
	var content any
	if json.Unmarshal(spec, &content) != nil {
		content = string(spec)
	}
	canonical, err := json.Marshal([]any{labels, owners, content})
	if err != nil {
		panic(fmt.Sprintf("encoding what was decoded: %v", err))
	}
	return sha256.Sum256(canonical)
}

// Decision has the writes and deletions for a source namespace.
type Decision struct {
	// Write are the filters to create or update, Delete those to delete.
	Write  []*unstructured.Unstructured
	Delete []Existing
}

// Decide returns the differences between the wanted and the existing filters of a source namespace.
func (x *Index) Decide(source string) Decision {
	x.mu.Lock()
	defer x.mu.Unlock()
	own := x.namespaces[source]
	if !x.isCompleteLocked() || own == nil || !x.isWatched(source) {
		return Decision{} // The namespace is gone, or is not watched (ICC-4).
	}
	for _, r := range x.rules[source] {
		if r.Unreadable {
			return Decision{}
		}
	}
	var d Decision
	wanted := x.wantedLocked(source)
	for _, namespace := range slices.Sorted(maps.Keys(wanted)) {
		filter := wanted[namespace]
		if e := x.filters[source][namespace]; e == nil || e.digest != digestOf(filter) {
			d.Write = append(d.Write, filter)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(x.filters[source])) {
		in := x.namespaces[namespace]
		if wanted[namespace] == nil && in != nil && !in.terminating {
			d.Delete = append(d.Delete, *x.filters[source][namespace])
		}
	}
	return d
}

func (x *Index) isWatched(namespace string) bool {
	return len(x.watched) == 0 || slices.Contains(x.watched, namespace) || slices.Contains(x.watched, "")
}

// ingressesLocked returns the namespaces of ingress gateways in which filters can be written, sorted (ICC-2).
func (x *Index) ingressesLocked() []string {
	var all []string
	for name, n := range x.namespaces {
		if n.ingress && !n.terminating && x.isWatched(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// wantedLocked returns the filters for the rules of a source namespace, by their own namespaces. A source namespace
// that is being deleted has none.
func (x *Index) wantedLocked(source string) map[string]*unstructured.Unstructured {
	own := x.namespaces[source]
	if own.terminating {
		return nil
	}
	ingresses := x.ingressesLocked()
	patches, seen := map[string]map[string]map[string]any{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(x.rules[source])) {
		r := x.rules[source][name]
		s := x.services[r.Service]
		if r.Service.Name == "" || s == nil {
			continue
		}
		for _, namespace := range visible(s.exportTo, s.Namespace, visible(r.ExportTo, source, ingresses)) {
			for _, p := range s.ports {
				// Of two rules for one host the first one applies, as in Istio.
				cluster := clusterName(s, p)
				if seen[namespace+"/"+cluster] {
					continue
				}
				seen[namespace+"/"+cluster] = true
				if patches[namespace] == nil {
					patches[namespace] = map[string]map[string]any{}
				}
				patches[namespace][cluster] = patch(s, p, r.modeFor(p))
			}
		}
	}
	wanted := map[string]*unstructured.Unstructured{}
	for namespace, byCluster := range patches {
		var all []any
		for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
			all = append(all, byCluster[cluster])
		}
		wanted[namespace] = filter(source, own.uid, namespace, all)
	}
	return wanted
}

// filter returns the EnvoyFilter of a source namespace in the namespace of a gateway (ICC-10).
func filter(source string, uid types.UID, namespace string, patches []any) *unstructured.Unstructured {
	o := Empty(namespace, source+suffix)
	o.Object["spec"] = map[string]any{"configPatches": patches}
	o.SetLabels(map[string]string{LabelManagedBy: ManagedBy})
	yes := true
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: source, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}})
	return o
}

// Empty returns an EnvoyFilter with a name only.
func Empty(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(istio.Group + "/v1alpha3")
	o.SetKind("EnvoyFilter")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Same reports whether two EnvoyFilters have the same managed fields.
func Same(a, b *unstructured.Unstructured) bool { return digestOf(a) == digestOf(b) }

func digestOf(o *unstructured.Unstructured) [sha256.Size]byte {
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil {
		panic(fmt.Sprintf("encoding an EnvoyFilter: %v", err)) // It has only maps, strings and numbers.
	}
	return digest(o.GetLabels(), o.GetOwnerReferences(), spec)
}
