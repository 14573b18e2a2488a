package fake

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Request is a request as the API knows it.
type Request struct {
	By string
	// Manager is the name in managed fields: the one that the request asks for, else the first part of the client's User-Agent, By if it sends none.
	Manager     string
	Verb        string // get, list, watch, create, update, patch, delete; discovery
	Path        string
	Group       string
	Version     string
	Resource    string
	Namespace   string
	Name        string
	Subresource string
	Query       url.Values
	Body        []byte
	ContentType string
	Partial     bool
}

// Key is the object that the request is about.
func (r *Request) Key() Key {
	return Key{schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Namespace, r.Name}
}

// Writes reports whether the request is to change something.
func (r *Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete":
		return true
	}
	return false
}

// String names the request without what differs from run to run.
func (r *Request) String() string {
	s := r.Verb + " " + strings.TrimPrefix(r.Path, "/")
	if selector := r.Query.Get("fieldSelector"); selector != "" {
		s += "?" + selector
	}
	return s
}

// parse reads a request; its body is read.
func parse(by string, from *http.Request) (*Request, error) {
	r := &Request{By: by, Path: from.URL.Path, Query: from.URL.Query(), ContentType: from.Header.Get("Content-Type")}
	if r.Manager, _, _ = strings.Cut(from.Header.Get("User-Agent"), "/"); r.Manager == "" {
		r.Manager = by
	}
	if manager := from.URL.Query().Get("fieldManager"); manager != "" {
		r.Manager = manager
	}
	r.Partial = strings.Contains(from.Header.Get("Accept"), "as=PartialObjectMetadata")
	if from.Body != nil {
		defer from.Body.Close() //nolint:errcheck // it is in memory
		body, err := io.ReadAll(from.Body)
		if err != nil {
			return nil, err
		}
		r.Body = body
	}
	parts := strings.Split(strings.Trim(from.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		r.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		r.Group, r.Version, parts = parts[1], parts[2], parts[3:]
	default:
		r.Verb = "discovery"
		return r, nil
	}
	if parts[0] == "namespaces" && len(parts) > 2 && (len(parts) > 3 || parts[2] != "status" && parts[2] != "finalize") {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = parts[2]
	}
	r.Verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodGet: "get"}[from.Method]
	if r.Verb == "get" && r.Name == "" {
		r.Verb = "list"
		if watch, _ := strconv.ParseBool(r.Query.Get("watch")); watch {
			r.Verb = "watch"
		}
	}
	return r, nil
}

// respond makes an answer of a status code and a body.
func respond(from *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: from,
	}
}

// Refusal answers with an error.
func Refusal(from *http.Request, status metav1.Status) *http.Response {
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	response := respond(from, int(status.Code), body)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return response
}

// notServed is the answer about a path that is not served: no Status, but a line of text.
func notServed(from *http.Request) *http.Response {
	response := respond(from, http.StatusNotFound, []byte("404 page not found\n"))
	response.Header.Set("Content-Type", "text/plain; charset=utf-8")
	return response
}

// Do carries out a request at once. delay is for the events of a watch.
func (s *Server) Do(from *http.Request, r *Request, delay func() time.Duration) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Verb == "discovery" {
		answer, known := s.discovered[r.Path]
		if !known {
			if found := s.discovery(r.Path); found != nil {
				answer = mustMarshal(found)
			}
			s.discovered[r.Path] = answer
		}
		if answer != nil {
			return respond(from, http.StatusOK, answer)
		}
		return notServed(from)
	}
	k := s.kinds[fmt.Sprintf("%s/%s/%s", r.Group, r.Version, r.Resource)]
	single := r.Name != "" || r.Verb == "create"
	if k == nil || !k.Namespaced && r.Namespace != "" || k.Namespaced && single && r.Namespace == "" || r.Subresource != "" && !k.hasSubresource(r.Subresource) {
		return notServed(from)
	}
	if r.Verb == "watch" {
		return s.watch(from, r, k, delay)
	}
	var answer Object
	var err error
	code := http.StatusOK
	switch r.Verb {
	case "get":
		answer, err = s.read(k, r)
	case "list":
		var list []byte
		if list, err = s.list(k, r); err == nil {
			return respond(from, code, list)
		}
	case "create":
		code = http.StatusCreated
		if k.Answer != nil || r.Subresource != "" {
			if answer, err = s.issue(k, r); err == nil {
				return respond(from, code, mustMarshal(answer))
			}
			break
		}
		answer, err = s.create(k, r)
	case "update", "patch":
		answer, err = s.change(k, r)
	case "delete":
		answer, err = s.remove(k, r)
	default:
		return Refusal(from, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed, Message: "the server does not allow this method on the requested resource"})
	}
	if err != nil {
		return Refusal(from, err.(apierrors.APIStatus).Status()) //nolint:errorlint // all errors here are of this type
	}
	if answer["kind"] == "Status" {
		return respond(from, code, mustMarshal(answer))
	}
	return respond(from, code, s.encode(answer, r.Partial))
}

func (k *Kind) hasSubresource(name string) bool {
	return name == "status" && k.Status || name == "finalize" && k.Kind == "Namespace" || name == "approval" && k.Approval || k.Issue[name] != nil
}

func (s *Server) find(k *Kind, key Key) (Object, error) {
	if o := s.objects[key]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
}

// read is find for a client, which may get an earlier state.
func (s *Server) read(k *Kind, r *Request) (Object, error) {
	if o := s.at(s.seen(r))[r.Key()]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(k.groupResource(), r.Name)
}

// selection compiles the selectors of a list or a watch.
func (s *Server) selection(k *Kind, r *Request) (func(Key, Object) bool, error) {
	byLabel, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(key Key, o Object) bool {
		if key.GroupResource != k.groupResource() || r.Namespace != "" && key.Namespace != r.Namespace {
			return false
		}
		set := labels.Set{}
		values, _ := meta(o)["labels"].(map[string]any)
		for name, value := range values {
			set[name], _ = value.(string)
		}
		if !byLabel.Matches(set) {
			return false
		}
		for _, requirement := range byField.Requirements() {
			if text(o, strings.Split(requirement.Field, ".")...) != requirement.Value {
				return false
			}
		}
		return true
	}, nil
}

// tooLarge is the answer about a revision that is still to come.
func tooLarge(revision, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func (s *Server) list(k *Kind, r *Request) ([]byte, error) {
	selected, err := s.selection(k, r)
	if err != nil {
		return nil, err
	}
	revision, after := s.seen(r), ""
	if token := r.Query.Get("continue"); token != "" {
		decoded, decodeErr := base64.RawURLEncoding.DecodeString(token)
		if _, scanErr := fmt.Sscanf(string(decoded), "%d %s", &revision, &after); decodeErr != nil || scanErr != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid")
		}
		if revision < s.compacted || revision > s.revision {
			return nil, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		}
	} else if wanted, _ := strconv.ParseInt(r.Query.Get("resourceVersion"), 10, 64); wanted > s.revision {
		return nil, tooLarge(wanted, s.revision)
	}
	limit, _ := strconv.Atoi(r.Query.Get("limit"))
	items, metadata := [][]byte{}, Object{"resourceVersion": strconv.FormatInt(revision, 10)}
	last := ""
	objects := s.at(revision)
	for _, key := range sortedKeys(objects, selected) {
		position := key.Namespace + "/" + key.Name
		if position <= after {
			continue
		}
		if limit > 0 && len(items) == limit {
			metadata["continue"] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", revision, last))
			break
		}
		items, last = append(items, s.encode(objects[key], r.Partial)), position
	}
	if r.Partial {
		return listed("meta.k8s.io/v1", "PartialObjectMetadataList", metadata, items), nil
	}
	return listed(k.GroupVersion().String(), k.Kind+"List", metadata, items), nil
}

// watch begins a watch (the caller has the lock).
func (s *Server) watch(from *http.Request, r *Request, k *Kind, delay func() time.Duration) *http.Response {
	selected, err := s.selection(k, r)
	if err != nil {
		return Refusal(from, err.(apierrors.APIStatus).Status()) //nolint:errorlint // all errors here are of this type
	}
	timeout := 30 * time.Minute
	if seconds, err := strconv.Atoi(r.Query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timeout = time.Duration(seconds) * time.Second
	}
	bookmark, _ := strconv.ParseBool(r.Query.Get("allowWatchBookmarks"))
	initial, _ := strconv.ParseBool(r.Query.Get("sendInitialEvents"))
	w := &stream{
		server: s, by: r.By, kind: k, selected: selected, partial: r.Partial, bookmark: bookmark, ctx: from.Context(),
		deadline: time.Now().Add(timeout), delay: delay, news: make(chan struct{}, 1), marked: time.Now(),
	}
	if s.Loses != nil {
		w.loses = time.Now().Add(s.Loses(k))
	}
	revision, _ := strconv.ParseInt(r.Query.Get("resourceVersion"), 10, 64)
	switch {
	case initial && revision > s.revision:
		return Refusal(from, tooLarge(revision, s.revision).(apierrors.APIStatus).Status()) //nolint:errorlint // it is made here
	case initial || revision == 0:
		seen := s.seen(r)
		objects := s.at(seen)
		for _, key := range sortedKeys(objects, selected) {
			w.push("ADDED", objects[key])
		}
		if initial && bookmark {
			w.pushBookmark(seen, true)
		}
		s.replay(w, seen)
	case revision < s.compacted:
		status := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, s.compacted)).ErrStatus
		w.send("ERROR", mustMarshal(Object{
			"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": status.Status, "message": status.Message,
			"reason": string(status.Reason), "code": int64(status.Code),
		}))
	default:
		// A revision that is still to come is accepted: kube-apiserver sends what is later, and nothing until then.
		w.from = revision
		s.replay(w, revision)
	}
	s.watches[w] = struct{}{}
	response := respond(from, http.StatusOK, nil)
	response.Body, response.ContentLength = w, -1
	return response
}

// replay sends a watch what happened after a revision.
func (s *Server) replay(w *stream, revision int64) {
	for _, record := range s.records {
		if record.revision > revision && record.key.GroupResource == w.kind.groupResource() {
			last := record.after
			if last == nil {
				last = deletedAt(record)
			}
			w.deliver(record, last)
		}
	}
}

func decodeBody(body []byte) (Object, error) {
	var o Object
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, apierrors.NewBadRequest("the object provided is unrecognized: " + err.Error())
	}
	return o, nil
}
