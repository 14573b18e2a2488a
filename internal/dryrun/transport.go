package dryrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// transport sends reads and answers writes.
type transport struct {
	*Server
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	end := t.begin()
	q := requestOf(r)
	answer, err := t.answer(r, &q)
	if err != nil || q.verb == "watch" {
		end()
		return answer, err
	}
	answer.Body = &ended{answer.Body, end}
	return answer, nil
}

type ended struct {
	io.ReadCloser
	end func()
}

func (e *ended) Close() error {
	e.end()
	return e.ReadCloser.Close()
}

func (t *transport) answer(r *http.Request, q *request) (*http.Response, error) {
	switch {
	case q.verb == "get" && q.resource == "":
		return t.discover(r, q)
	case r.Method == http.MethodHead || q.verb == "get" && q.subresource != "":
		return t.forward(r, q)
	case q.verb == "get":
		return t.get(r, q)
	case q.verb == "list":
		return t.list(r, q)
	case q.verb == "watch":
		return t.watch(r, q)
	}
	answer, err := t.write(r, q)
	if failure := apierrors.APIStatus(nil); errors.As(err, &failure) {
		return respond(r, int(failure.Status().Code), failure.Status()), nil
	}
	return answer, err
}

func (t *transport) forward(r *http.Request, q *request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, fmt.Errorf("%s is not sent", q) // No caller does this.
	}
	answer, err := t.next.RoundTrip(r)
	switch {
	case err != nil && r.Context().Err() == nil:
		t.trouble(q, err)
	case err == nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden || answer.StatusCode >= 500):
		t.trouble(q, errors.New(answer.Status))
	case err == nil && answer.StatusCode != http.StatusTooManyRequests:
		t.trouble(q, nil)
	}
	return answer, err
}

// inJSON returns a copy of a request that asks for JSON instead of Protocol Buffers.
func inJSON(r *http.Request) *http.Request {
	clone := r.Clone(r.Context())
	accept := strings.ReplaceAll(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf", "application/json")
	clone.Header.Set("Accept", cmp.Or(accept, "application/json"))
	return clone
}

func decoded(content []byte) (object, error) {
	o := object{}
	if err := utiljson.Unmarshal(content, &o); err != nil {
		return nil, fmt.Errorf("decoding an answer: %w", err)
	}
	return o, nil
}

// read sends a read and decodes the response, nil for a missing object. It returns any other response as it is.
func (t *transport) read(r *http.Request, q *request) (object, *http.Response, error) {
	answer, err := t.forward(inJSON(r), q)
	if err != nil {
		return nil, nil, err
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		return nil, answer, nil
	}
	defer answer.Body.Close() //nolint:errcheck // It was read.
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	if answer.StatusCode == http.StatusNotFound {
		return nil, answer, nil
	}
	found, err := decoded(content)
	return found, answer, err
}

func (t *transport) get(r *http.Request, q *request) (*http.Response, error) {
	here := t.defines(q)
	if !here && !t.has(q.collection) {
		return t.forward(r, q)
	}
	var live object
	if !here {
		var answer *http.Response
		var err error
		if live, answer, err = t.read(r, q); err != nil || live == nil && answer.StatusCode != http.StatusNotFound {
			return answer, err
		}
	}
	if current := t.current(q.key, live); current != nil {
		return respond(r, http.StatusOK, shown(q, current)), nil
	}
	failure := notFound(q)
	return respond(r, int(failure.ErrStatus.Code), failure.ErrStatus), nil
}

func notFound(q *request) *apierrors.StatusError { return apierrors.NewNotFound(q.kind(), q.name) }

func (q *request) kind() schema.GroupResource {
	return schema.GroupResource{Group: q.group, Resource: q.resource}
}

func (t *transport) list(r *http.Request, q *request) (*http.Response, error) {
	here := t.defines(q)
	if !here && !t.has(q.collection) {
		return t.forward(r, q)
	}
	selected, err := selectionOf(r, q)
	if err != nil {
		return nil, err
	}
	var list object
	if here {
		list = t.nothing(q)
	} else {
		var answer *http.Response
		if list, answer, err = t.read(r, q); err != nil || list == nil {
			return answer, err
		}
	}
	items, _ := list["items"].([]any)
	list["items"] = t.overlaid(q, items, selected, text(list, "metadata", "continue") == "")
	return respond(r, http.StatusOK, list), nil
}

// overlaid returns the items of a page with their overlays; the last page has the objects that the API server lacks.
func (t *transport) overlaid(q *request, items []any, selected *selection, last bool) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	result := make([]any, 0, len(items))
	for _, item := range items {
		live, _ := item.(object)
		k := keyIn(q.collection, live)
		over, found := t.overLocked(k, versionOf(live))
		switch {
		case !found:
			result = append(result, item)
		case selected.has(over):
			result = append(result, shown(q, over))
		}
	}
	if !last {
		return result
	}
	for _, e := range t.entries[q.collection] {
		if e.base == "" && selected.has(e.object) {
			result = append(result, shown(q, e.object))
		}
	}
	return result
}

func selectionOf(r *http.Request, q *request) (*selection, error) {
	query := r.URL.Query()
	byLabels, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byFields, err := fields.ParseSelector(query.Get("fieldSelector"))
	return &selection{q.namespace, byLabels, byFields}, err
}

// respond returns a response with a JSON body.
func respond(r *http.Request, code int, body any) *http.Response {
	if status, ok := body.(metav1.Status); ok {
		status.Kind, status.APIVersion = "Status", "v1"
		body = status
	}
	content, err := json.Marshal(body)
	if err != nil { // The body was decoded from JSON.
		code, content = http.StatusInternalServerError, nil
	}
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)), Request: r,
	}
}
