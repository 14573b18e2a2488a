package dryrun

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

// write answers a write and records it. The error may be an API status.
func (t *transport) write(r *http.Request, q *request) (*http.Response, error) {
	body, raw, err := bodyOf(r)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if q.verb == "create" {
		if answer := t.question(q, body); answer != nil {
			return respond(r, http.StatusCreated, answer), nil
		}
		if q.name != "" || q.resource == "" {
			return nil, apierrors.NewMethodNotSupported(q.kind(), q.verb)
		}
		named(q, body)
	}
	if q.name == "" {
		return nil, apierrors.NewMethodNotSupported(q.kind(), q.verb)
	}
	live, base, err := t.before(r, q)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.currentLocked(q.key, live)
	t.highest = max(t.highest, number(base), number(versionOf(current)))
	after, err := t.afterLocked(r, q, current, body, raw)
	if err != nil {
		return nil, err
	}
	t.recordLocked(t.writeOf(r, q, current, after))
	switch {
	case reflect.DeepEqual(current, after):
	case after != nil && text(after, "metadata", "deletionTimestamp") != "" && !isKept(after):
		t.putLocked(q.key, versionOf(live), current, nil) // The last finalizer was removed.
	default:
		t.putLocked(q.key, versionOf(live), current, after)
	}
	switch q.verb {
	case "delete":
		return respond(r, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}), nil
	case "create":
		return respond(r, http.StatusCreated, shown(q, after)), nil
	}
	return respond(r, http.StatusOK, shown(q, after)), nil
}

func (t *transport) writeOf(r *http.Request, q *request, before, after object) Write {
	w := Write{Verb: q.verb, Group: q.group, Resource: q.resource, Subresource: q.subresource, Namespace: q.namespace, Name: q.name}
	if q.verb == "update" || q.verb == "patch" {
		w.Fields = changes(before, after)
	}
	by := causeOf(r.Context())
	if w.Controller = by.controller; by.name != "" && (by.namespace != q.namespace || by.name != q.name) {
		w.For = by.name
		if by.namespace != "" {
			w.For = by.namespace + "/" + by.name
		}
	}
	return w
}

// bodyOf returns the body of a write as an object and as bytes. The body may be empty.
func bodyOf(r *http.Request) (object, []byte, error) {
	if r.Body == nil {
		return object{}, nil, nil
	}
	defer r.Body.Close() //nolint:errcheck // It was read.
	raw, err := io.ReadAll(r.Body)
	if err != nil || len(raw) == 0 {
		return object{}, nil, err
	}
	if raw[0] == '{' {
		body, err := decoded(raw)
		return body, raw, err
	}
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil) // Protocol Buffers, of a built-in kind.
	if err != nil {
		return nil, nil, err
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return body, raw, err
}

// named adds the name of the object to a create request.
func named(q *request, body object) {
	q.name = text(body, "metadata", "name")
	if prefix := text(body, "metadata", "generateName"); q.name == "" && prefix != "" {
		q.name = prefix + rand.String(5)
		metadata(body)["name"] = q.name
	}
}

// before returns the API server's object that is to be written, nil if there is none, and a resource version as high
// as any: the object's, or that of a list.
func (t *transport) before(r *http.Request, q *request) (live object, version string, err error) {
	if t.defines(q) {
		return nil, "", nil
	}
	single := *q
	single.verb, single.subresource = "get", ""
	live, err = t.readForWrite(reading(r, path(&single), nil), &single)
	if err != nil || live != nil {
		return live, versionOf(live), err
	}
	single.verb, single.name = "list", ""
	list, err := t.readForWrite(reading(r, path(&single), url.Values{"limit": {"1"}}), &single)
	return nil, versionOf(list), err
}

// readForWrite reads the object of a write: nil for a missing object, and an error for every other answer.
func (t *transport) readForWrite(r *http.Request, q *request) (object, error) {
	found, answer, err := t.read(r, q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // It was read, or only its status is needed.
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		return nil, fmt.Errorf("reading the object to write: %s", answer.Status)
	}
	return found, nil
}

// reading returns a GET with the credentials of another request.
func reading(r *http.Request, path string, query url.Values) *http.Request {
	clone := r.Clone(r.Context())
	clone.Method, clone.Body, clone.ContentLength = http.MethodGet, nil, 0
	clone.URL.Path, clone.URL.RawPath, clone.URL.RawQuery = path, "", query.Encode()
	clone.Header.Del("Content-Type")
	clone.Header.Set("Accept", "application/json")
	return clone
}

func path(q *request) string {
	path := "/apis/" + q.apiVersion()
	if q.group == "" {
		path = "/api/" + q.version
	}
	if q.namespace != "" {
		path += "/namespaces/" + q.namespace
	}
	path += "/" + q.resource
	if q.name != "" {
		path += "/" + q.name
	}
	return path
}

// afterLocked returns the object after a write.
func (t *transport) afterLocked(r *http.Request, q *request, current, body object, raw []byte) (object, error) {
	switch {
	case q.verb == "create" && current != nil:
		return nil, apierrors.NewAlreadyExists(q.kind(), q.name)
	case q.verb == "create":
		return t.createdLocked(q, body), nil
	case current == nil:
		return nil, notFound(q)
	case q.verb == "delete":
		return t.deletedLocked(q, current, body)
	}
	wanted := body
	if q.verb == "patch" {
		if kind := r.Header.Get("Content-Type"); kind != string(types.MergePatchType) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("a patch of type %s has no answer here", kind))
		}
		var err error
		if wanted, err = merged(current, raw); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if version := versionOf(body); version != "" && version != versionOf(current) {
		return nil, apierrors.NewConflict(q.kind(), q.name, fmt.Errorf("the object has been modified"))
	}
	return t.changedLocked(q, current, wanted), nil
}

func merged(current object, patch []byte) (object, error) {
	content, err := utiljson.Marshal(current)
	if err != nil {
		return nil, err
	}
	if content, err = jsonpatch.MergePatch(content, patch); err != nil {
		return nil, err
	}
	return decoded(content)
}

func (t *transport) createdLocked(q *request, body object) object {
	after := runtime.DeepCopyJSON(body)
	meta := metadata(after)
	if meta == nil {
		meta = object{}
		after["metadata"] = meta
	}
	meta["uid"], meta["creationTimestamp"] = string(uuid.NewUUID()), time.Now().UTC().Format(time.RFC3339)
	meta["generation"], meta["resourceVersion"] = int64(1), t.nextLocked("")
	if q.namespace != "" {
		meta["namespace"] = q.namespace
	}
	established(q.key, after)
	return after
}

// deletedLocked returns nil for an object that is deleted at once. Neither garbage collection by Kubernetes nor the
// termination of Pods is simulated.
func (t *transport) deletedLocked(q *request, current, options object) (object, error) {
	for _, name := range []string{"uid", "resourceVersion"} {
		if want := text(options, "preconditions", name); want != "" && want != text(current, "metadata", name) {
			return nil, apierrors.NewConflict(q.kind(), q.name, fmt.Errorf("the %s in the precondition differs", name))
		}
	}
	if !isKept(current) {
		return nil, nil
	}
	if text(current, "metadata", "deletionTimestamp") != "" {
		return current, nil
	}
	after := runtime.DeepCopyJSON(current)
	metadata(after)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	metadata(after)["resourceVersion"] = t.nextLocked(versionOf(current))
	return after, nil
}

// changedLocked returns the API server's result of a change: a subresource changes only the status, and an unchanged
// object keeps its version.
func (t *transport) changedLocked(q *request, current, wanted object) object {
	after := runtime.DeepCopyJSON(wanted)
	if q.subresource != "" {
		after = runtime.DeepCopyJSON(current)
		if status, found := wanted["status"]; found {
			after["status"] = runtime.DeepCopyJSONValue(status)
		}
	} else if _, found := after["status"]; !found && current["status"] != nil {
		after["status"] = current["status"]
	}
	after["kind"], after["apiVersion"] = current["kind"], current["apiVersion"]
	meta, before := metadata(after), metadata(current)
	for _, name := range ownFields {
		delete(meta, name)
		if value, found := before[name]; found {
			meta[name] = value
		}
	}
	if len(changes(current, after)) == 0 {
		return current
	}
	meta["resourceVersion"] = t.nextLocked(versionOf(current))
	if generation, found, _ := unstructured.NestedInt64(current, "metadata", "generation"); found && specified(current, after) {
		meta["generation"] = generation + 1
	}
	return after
}

// specified reports whether something other than metadata and status differs.
func specified(a, b object) bool {
	of := func(o object) object {
		o = maps.Clone(o)
		delete(o, "metadata")
		delete(o, "status")
		return o
	}
	return len(changes(of(a), of(b))) > 0
}
