package fake

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is a JSON object; what is stored is never changed.
type Object = map[string]any

// Kind is a kind that the server serves.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Namespaced bool
	// Status is true if the status is a subresource: other writes leave it alone.
	Status bool
	// Counts is true if the generation counts what changes beside metadata and status.
	Counts bool
	// Custom is true for custom resources, whose updates need a resource version.
	Custom bool
	// Approval is true if there is a subresource of that name, which writes the status.
	Approval bool
	// Issue answers for what is created in a subresource of an object, by the subresource's name. Nothing is stored.
	Issue map[string]func(of, sent Object) (Object, error)
	// Answer answers for what is created of a kind that is not stored; nil for others.
	Answer func(sent Object) (Object, error)
	// Defaults fills in what is left out; nil for none.
	Defaults func(Object)
	// Validate refuses an object; old is nil for a new one. nil for none.
	Validate func(object, old Object) field.ErrorList
}

func (k *Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

func kind(group, version, name, resource string) *Kind {
	return &Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Resource: resource, Namespaced: true}
}

// BuiltIn returns the kinds of Kubernetes that are simulated, as far as the engine can tell the difference.
func BuiltIn() []*Kind {
	configMap, secret := kind("", "v1", "ConfigMap", "configmaps"), kind("", "v1", "Secret", "secrets")
	configMap.Validate, secret.Validate = immutable, immutable
	secret.Defaults = func(o Object) { setDefault(o, "Opaque", "type") }
	namespace := kind("", "v1", "Namespace", "namespaces")
	namespace.Namespaced, namespace.Status = false, true
	pod := kind("", "v1", "Pod", "pods")
	pod.Status = true
	deployment, replicaSet := kind("apps", "v1", "Deployment", "deployments"), kind("apps", "v1", "ReplicaSet", "replicasets")
	deployment.Status, deployment.Counts, replicaSet.Status, replicaSet.Counts = true, true, true, true
	deployment.Defaults = func(o Object) { setDefault(o, int64(1), "spec", "replicas") }
	policy := kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
	policy.Counts = true
	policy.Defaults = func(o Object) { setDefault(o, []any{"Ingress"}, "spec", "policyTypes") }
	autoscaler := kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
	autoscaler.Status = true
	crd := kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
	crd.Namespaced, crd.Status, crd.Counts = false, true, true
	crd.Validate = sameScope
	return []*Kind{
		configMap, secret, namespace, pod, deployment, replicaSet, policy, autoscaler, crd,
		kind("", "v1", "ServiceAccount", "serviceaccounts"), kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
		kind("", "v1", "Event", "events"),
	}
}

// BuiltInKind is a kind of Kubernetes beside those of BuiltIn.
func BuiltInKind(group, version, name, resource string, namespaced bool) *Kind {
	k := kind(group, version, name, resource)
	k.Namespaced = namespaced
	return k
}

// CustomKind is the kind of a CustomResourceDefinition with a status.
func CustomKind(group, version, name, resource string, namespaced bool) *Kind {
	k := kind(group, version, name, resource)
	k.Namespaced, k.Status, k.Counts, k.Custom = namespaced, true, true, true
	return k
}

func setDefault(o Object, value any, path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(o, path...); err == nil && !found {
		_ = unstructured.SetNestedField(o, value, path...)
	}
}

func immutable(object, old Object) field.ErrorList {
	if old == nil || old["immutable"] != true {
		return nil
	}
	var errs field.ErrorList
	for _, key := range []string{"immutable", "data", "binaryData"} {
		if !reflect.DeepEqual(object[key], old[key]) {
			errs = append(errs, field.Forbidden(field.NewPath(key), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

func sameScope(object, old Object) field.ErrorList {
	if old == nil {
		return nil
	}
	is, _, _ := unstructured.NestedString(object, "spec", "scope")
	was, _, _ := unstructured.NestedString(old, "spec", "scope")
	if is != was {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "scope"), is, "field is immutable")}
	}
	return nil
}

// content is what the generation counts.
func content(o Object) Object {
	c := maps.Clone(o)
	delete(c, "metadata")
	delete(c, "status")
	return c
}

// Serve begins to serve a kind.
func (s *Server) Serve(kinds ...*Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range kinds {
		s.kinds[pathOf(k)] = k
	}
	clear(s.discovered)
}

// Withdraw ends serving a kind: its watches end, and what is stored of it is hidden until it is served again.
func (s *Server) Withdraw(k *Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, pathOf(k))
	clear(s.discovered)
	for w := range s.watches {
		if pathOf(w.kind) == pathOf(k) {
			w.end()
		}
	}
}

func pathOf(k *Kind) string { return fmt.Sprintf("%s/%s/%s", k.Group, k.Version, k.Resource) }

// discovery answers for /api, /apis and the versions below them; nil if nothing is served there.
func (s *Server) discovery(path string) Object {
	versions := map[string][]string{}
	resources := map[string][]any{}
	for _, k := range slices.SortedFunc(maps.Values(s.kinds), func(a, b *Kind) int { return compare(pathOf(a), pathOf(b)) }) {
		gv := k.GroupVersion().String()
		if !slices.Contains(versions[k.Group], gv) {
			versions[k.Group] = append(versions[k.Group], gv)
		}
		verbs := []any{"create", "delete", "get", "list", "patch", "update", "watch"}
		resources[gv] = append(resources[gv], Object{"name": k.Resource, "singularName": "", "namespaced": k.Namespaced, "kind": k.Kind, "verbs": verbs})
		if k.Status {
			resources[gv] = append(resources[gv], Object{"name": k.Resource + "/status", "singularName": "", "namespaced": k.Namespaced, "kind": k.Kind, "verbs": []any{"get", "patch", "update"}})
		}
	}
	switch path {
	case "/api":
		return Object{"kind": "APIVersions", "versions": []any{"v1"}}
	case "/apis":
		groups := []any{}
		for _, group := range slices.Sorted(maps.Keys(versions)) {
			if group != "" {
				groups = append(groups, groupOf(group, versions[group]))
			}
		}
		return Object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	}
	gv := trimPath(path)
	if list := resources[gv]; list != nil {
		return Object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": list}
	}
	if list := versions[gv]; list != nil && gv != "" {
		group := groupOf(gv, list)
		group["kind"], group["apiVersion"] = "APIGroup", "v1"
		return group
	}
	return nil
}

func groupOf(group string, gvs []string) Object {
	versions := []any{}
	for _, gv := range gvs {
		versions = append(versions, Object{"groupVersion": gv, "version": gv[len(group)+1:]})
	}
	return Object{"name": group, "versions": versions, "preferredVersion": versions[0]}
}
