package dryrun

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// definitions is the collection of CustomResourceDefinitions. A kind that the process has defined here counts as
// served.
var definitions = collection{"apiextensions.k8s.io", "customresourcedefinitions"}

// definedLocked returns the resources of a group and version from CustomResourceDefinitions that only exist here, in
// the format of discovery.
func (s *Server) definedLocked(group, version string) []any {
	var resources []any
	for _, e := range s.entries[definitions] {
		if e.base != "" || text(e.object, "spec", "group") != group {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(e.object, "spec", "versions")
		for _, v := range versions {
			of, _ := v.(object)
			if served, _, _ := unstructured.NestedBool(of, "served"); !served || text(of, "name") != version {
				continue
			}
			resources = append(resources, object{
				"name": text(e.object, "spec", "names", "plural"), "kind": text(e.object, "spec", "names", "kind"),
				"namespaced": text(e.object, "spec", "scope") == "Namespaced", "verbs": []any{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	return resources
}

// defines reports whether the kind of a request is defined here, and not in the API server.
func (s *Server) defines(q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range s.definedLocked(q.group, q.version) {
		if of, _ := resource.(object); of["name"] == q.resource {
			return true
		}
	}
	return false
}

// discover answers a discovery request for a group and version.
func (t *transport) discover(r *http.Request, q *request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 3 || parts[0] != "apis" {
		return t.forward(r, q)
	}
	t.mu.Lock()
	here := t.definedLocked(parts[1], parts[2])
	t.mu.Unlock()
	if len(here) == 0 {
		return t.forward(r, q)
	}
	list, answer, err := t.read(r, q)
	if err != nil || list == nil && answer.StatusCode != http.StatusNotFound {
		return answer, err
	}
	if list == nil {
		list = object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": parts[1] + "/" + parts[2]}
	}
	there, _ := list["resources"].([]any)
	list["resources"] = append(there, here...)
	return respond(r, http.StatusOK, list), nil
}

// nothing returns the empty list of a kind that the API server does not serve.
func (t *transport) nothing(q *request) object {
	t.mu.Lock()
	defer t.mu.Unlock()
	return object{"kind": "List", "apiVersion": q.apiVersion(), "metadata": object{"resourceVersion": t.nextLocked("")}, "items": []any{}}
}

// silence is the body of a watch of such a kind.
func silence() io.ReadCloser {
	reader, _ := io.Pipe()
	return reader
}

// established sets the status of a new CustomResourceDefinition, as the API server does at once.
func established(k key, o object) {
	if k.collection != definitions {
		return
	}
	var conditions []any
	for _, kind := range []string{"NamesAccepted", "Established"} {
		conditions = append(conditions, object{"type": kind, "status": "True"})
	}
	o["status"] = object{"conditions": conditions}
	if spec, ok := o["spec"].(object); ok {
		o["status"].(object)["acceptedNames"] = spec["names"]
	}
}
