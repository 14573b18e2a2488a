package dryrun

import (
	"net/http"
	"strconv"
	"strings"
)

// collection identifies the objects of a kind, in all versions of its group.
type collection struct{ group, resource string }

// key identifies an object.
type key struct {
	collection
	namespace, name string
}

// request is the API request of an HTTP request. Without a resource in the path, the key is empty.
type request struct {
	key
	verb, version, subresource string
	// partial is set if the client accepts PartialObjectMetadata.
	partial bool
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// requestOf reads the path and the method of a request.
func requestOf(r *http.Request) request {
	q := request{verb: verbs[r.Method], partial: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		q.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		q.group, q.version, parts = parts[1], parts[2], parts[3:]
	default:
		return q
	}
	if parts[0] == "namespaces" && len(parts) > 2 && (len(parts) > 3 || parts[2] != "status" && parts[2] != "finalize") {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.resource = parts[0]
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = strings.Join(parts[2:], "/")
	}
	if watch, err := strconv.ParseBool(r.URL.Query().Get("watch")); q.verb == "get" && q.name == "" {
		q.verb = "list"
		if err == nil && watch {
			q.verb = "watch"
		}
	}
	return q
}

func (q *request) apiVersion() string {
	if q.group == "" {
		return q.version
	}
	return q.group + "/" + q.version
}

// String returns the verb, the resource and the object, without the other parts of the request.
func (q *request) String() string {
	text := q.verb + " " + q.resource
	if q.group != "" {
		text += "." + q.group
	}
	if q.subresource != "" {
		text += "/" + q.subresource
	}
	if at := strings.Trim(q.namespace+"/"+q.name, "/"); at != "" {
		text += " " + at
	}
	return text
}
