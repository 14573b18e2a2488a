package feature

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Cluster is a cluster that a process connects to.
type Cluster string

const (
	// Source has the ManagedResources and their Secrets.
	Source Cluster = "source"
	// Target has the objects of ManagedResources, and those that most webhooks and controllers handle.
	Target Cluster = "target"
	// Garden has the landscape's API.
	Garden Cluster = "garden"
)

// Form is the extent to which a kind is read and kept.
type Form string

const (
	// Whole means that objects are kept in a cache, without managed fields and the fields that Strip removes.
	Whole Form = "whole"
	// Metadata means that only the objects' metadata is kept in a cache.
	Metadata Form = "metadata"
	// Live means that single objects are read when they are needed, and none is kept.
	Live Form = "live"
	// List means that objects are listed when they are needed, and none is kept.
	List Form = "list"
	// Stream means that a watch delivers the objects, and none is kept.
	Stream Form = "stream"
)

// Read describes the reads of a kind by a feature.
type Read struct {
	Cluster Cluster
	// Kind has no name if no reader uses the kind, but only the path of its resource: then no mapping is declared.
	Kind schema.GroupVersionKind
	// Resource is the kind's name in paths, such as "pods".
	Resource string
	// ClusterScoped is set if the kind has no namespaces.
	ClusterScoped bool
	Form          Form
	// Selector and FieldSelector restrict the kept objects; empty means all.
	Selector, FieldSelector string
	// Namespace restricts the reads to one namespace; empty means the configured namespaces.
	Namespace string
	// Names restricts the live reads to some objects.
	Names []string
	// Listed is set if the kind is listed in addition to live reads of single objects.
	Listed bool
	// Optional is set if the kind may not be served, or only later: no start waits for it.
	Optional bool
	// Strip removes unused fields; nil means that the reader needs all fields of the form.
	Strip Strip
}

// Write describes the writes of a kind by a feature.
type Write struct {
	Cluster Cluster
	// Group and Resource identify the kind; the latter may include a subresource ("pods/eviction").
	Group, Resource string
	Verbs           []string
	// ClusterScoped is set if the kind has no namespaces.
	ClusterScoped bool
	// Names restricts the written objects; it cannot be combined with create.
	Names []string
	// Namespace restricts the writes to one namespace; empty means the configured namespaces.
	Namespace string
}

// Rights returns the permissions for a read.
func (r *Read) Rights() rbacv1.PolicyRule {
	verbs := []string{"list", "watch"}
	if r.Form == Live {
		verbs = []string{"get"}
		if r.Listed {
			verbs = append(verbs, "list")
		}
	}
	if r.Form == List {
		verbs = []string{"list"}
	}
	return rbacv1.PolicyRule{APIGroups: []string{r.Kind.Group}, Resources: []string{r.Resource}, Verbs: verbs, ResourceNames: r.Names}
}

// Rights returns the permissions for a write.
func (w *Write) Rights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{w.Group}, Resources: []string{w.Resource}, Verbs: w.Verbs, ResourceNames: w.Names}
}

// Scope is the scope of permissions: a namespace of a cluster, or all of it.
type Scope struct {
	Cluster   Cluster
	Namespace string
}

// Rights returns the permissions of the rows in each scope, sorted, with each group, resource and set of names once,
// and without permissions that every client has. If the process is restricted to namespaces of a cluster, permissions
// for namespaced kinds are in those.
func Rights[C, E any](rows []Row[C, E], cfg *C, namespaces map[Cluster][]string) map[Scope][]rbacv1.PolicyRule {
	all := map[Scope][]rbacv1.PolicyRule{}
	allow := func(cluster Cluster, namespace string, clusterScoped bool, rule rbacv1.PolicyRule) {
		in := namespaces[cluster]
		if namespace != "" || clusterScoped || len(in) == 0 {
			in = []string{namespace}
		}
		for _, each := range in {
			all[Scope{cluster, each}] = append(all[Scope{cluster, each}], rule)
		}
	}
	for _, row := range rows {
		for _, read := range row.ReadsOf(cfg) {
			allow(read.Cluster, read.Namespace, read.ClusterScoped, read.Rights())
		}
		if row.Writes != nil {
			for _, write := range row.Writes(cfg) {
				allow(write.Cluster, write.Namespace, write.ClusterScoped, write.Rights())
			}
		}
	}
	for scope, rules := range all {
		all[scope] = Join(rules)
	}
	for scope, rules := range all {
		everywhere := all[Scope{Cluster: scope.Cluster}]
		if scope.Namespace == "" {
			everywhere = nil
		}
		rest := slices.DeleteFunc(slices.Clone(rules), func(rule rbacv1.PolicyRule) bool { return covered(rule, everywhere) })
		if all[scope] = rest; len(rest) == 0 {
			delete(all, scope)
		}
	}
	return all
}

// covered reports whether some rules together allow everything that a rule allows.
func covered(rule rbacv1.PolicyRule, by []rbacv1.PolicyRule) bool {
	covers, _ := validation.Covers(by, []rbacv1.PolicyRule{rule})
	return covers
}

// verbOrder is the conventional order of verbs.
var verbOrder = []string{"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// Join returns equivalent rules, sorted, with each group, resource and set of names once, and without redundant
// rules. Resources of a group with the same verbs are one rule.
func Join(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type what struct{ group, resource, names string }
	verbs := map[what]map[string]bool{}
	for _, rule := range rules {
		names := slices.Sorted(slices.Values(rule.ResourceNames))
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				key := what{group, resource, strings.Join(names, " ")}
				if verbs[key] == nil {
					verbs[key] = map[string]bool{}
				}
				for _, verb := range rule.Verbs {
					verbs[key][verb] = true
				}
			}
		}
	}
	type joined struct{ group, names, verbs string }
	resources := map[joined][]string{}
	for key, set := range verbs {
		var list []string
		for verb := range set {
			list = append(list, verb)
		}
		if set["*"] {
			list = []string{"*"}
		}
		slices.SortFunc(list, func(a, b string) int {
			return cmp.Or(cmp.Compare(uint(slices.Index(verbOrder, a)), uint(slices.Index(verbOrder, b))), strings.Compare(a, b))
		})
		as := joined{key.group, key.names, strings.Join(list, " ")}
		resources[as] = append(resources[as], key.resource)
	}
	var result []rbacv1.PolicyRule
	for as, list := range resources {
		slices.Sort(list)
		rule := rbacv1.PolicyRule{APIGroups: []string{as.group}, Resources: list, Verbs: strings.Fields(as.verbs)}
		if as.names != "" {
			rule.ResourceNames = strings.Fields(as.names)
		}
		result = append(result, rule)
	}
	slices.SortFunc(result, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(strings.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.Verbs, b.Verbs))
	})
	for i := len(result) - 1; i >= 0; i-- {
		if covered(result[i], slices.Delete(slices.Clone(result), i, i+1)) {
			result = slices.Delete(result, i, i+1)
		}
	}
	return result
}

// GuardSwitch is the field of every configuration that enables the guard of metrics.
const GuardSwitch = "debugging.authentication.enabled"

// GuardWrites returns the writes that authenticate and authorize a reader of metrics.
func GuardWrites(cluster Cluster) []Write {
	return []Write{
		{Cluster: cluster, Group: "authentication.k8s.io", Resource: "tokenreviews", ClusterScoped: true, Verbs: []string{"create"}},
		{Cluster: cluster, Group: "authorization.k8s.io", Resource: "subjectaccessreviews", ClusterScoped: true, Verbs: []string{"create"}},
	}
}
