package auditlog

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

const deleteCollection = "deletecollection"

// Wrote reports whether the request changed objects, or one of the given subresources. A failed deletion of a
// collection may have deleted some of them.
func (e *Event) Wrote(subresources ...string) bool {
	done := e.Code >= 200 && e.Code <= 299
	switch e.Verb {
	case "create", "update", "patch", "delete":
		return done && (e.Subresource == "" || slices.Contains(subresources, e.Subresource)) && !e.DryRun()
	case deleteCollection:
		return (done || e.Code >= http.StatusInternalServerError || e.Code == http.StatusConflict) && !e.DryRun()
	}
	return false
}

// DryRun reports whether the request was a dry run, as the API server reads URI and body.
func (e *Event) DryRun() bool { return len(e.options().DryRun) > 0 }

// options returns the options of a write. If a deletion has a body, the API server reads only the body.
func (e *Event) options() (options metav1.DeleteOptions) {
	if e.deletes() && e.RequestObject != "" {
		_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte(e.RequestObject), &options) // Readable fields count.
		return options
	}
	_, query, found := strings.Cut(e.RequestURI, "?")
	if !found {
		return options
	}
	values, _ := url.ParseQuery(query) // The API server also ignores invalid parameters.
	options.DryRun = values["dryRun"]
	if policy := metav1.DeletionPropagation(values.Get("propagationPolicy")); policy != "" {
		options.PropagationPolicy = &policy
	}
	return options
}

func (e *Event) deletes() bool { return e.Verb == "delete" || e.Verb == deleteCollection }

// Change is an object after a write.
type Change struct {
	// Kind is empty if the log does not have it.
	Kind, Namespace, Name string
	// Body is the object as JSON. Gone is set if the write removed the object.
	Body []byte
	Gone bool
}

// Changes returns the objects that a write changed; known is false if the log does not contain them. It uses the
// object in the response, or the one in the request, which is sufficient for creations and updates.
func (e *Event) Changes() (changes []Change, known bool) {
	if e.Verb == deleteCollection {
		return e.collection()
	}
	body := e.ResponseObject
	if body == "" && (e.Verb == "create" || e.Verb == "update") {
		body = e.RequestObject
	}
	var head objectHead
	if body == "" || head.read(body) != nil {
		return nil, false
	}
	c := head.change(e, body)
	deleting := head.Metadata.DeletionTimestamp != nil
	c.Gone = e.Verb == "delete" && (head.Kind == "Status" || !deleting) || deleting && !head.hasFinalizers()
	return []Change{c}, c.Name != ""
}

// collection returns the objects of a deleted collection: the response has them in their state before the deletion.
func (e *Event) collection() (changes []Change, known bool) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(e.ResponseObject), &list)
	if err != nil || !strings.HasSuffix(list.Kind, "List") || e.Code > 299 {
		return nil, false
	}
	policy := e.options().PropagationPolicy
	stays := policy != nil && *policy != metav1.DeletePropagationBackground // Then a finalizer is added.
	for _, item := range list.Items {
		var head objectHead
		if head.read(string(item)) != nil {
			return nil, false
		}
		c := head.change(e, string(item))
		c.Gone = !stays && !head.hasFinalizers()
		changes = append(changes, c)
	}
	return changes, true
}

// objectHead has the fields of an object that decide whether a deletion removes it.
type objectHead struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace         string   `json:"namespace"`
		Name              string   `json:"name"`
		DeletionTimestamp *string  `json:"deletionTimestamp"`
		Finalizers        []string `json:"finalizers"`
	} `json:"metadata"`
	Spec struct {
		// Finalizers are a Namespace's.
		Finalizers any `json:"finalizers"`
	} `json:"spec"`
}

func (h *objectHead) read(body string) error {
	return kjson.UnmarshalCaseSensitivePreserveInts([]byte(body), h)
}

func (h *objectHead) change(e *Event, body string) Change {
	c := Change{Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name, Body: []byte(body)}
	if c.Name == "" {
		c.Name = e.Name
	}
	if c.Namespace == "" {
		c.Namespace = e.Namespace
	}
	return c
}

// hasFinalizers reports whether finalizers keep the object.
func (h *objectHead) hasFinalizers() bool {
	ofNamespace, _ := h.Spec.Finalizers.([]any)
	return len(h.Metadata.Finalizers) > 0 || h.Kind == "Namespace" && len(ofNamespace) > 0
}

// Followed counts the writes in a log.
type Followed struct {
	// Writes are those with their objects in the log. Bodiless writes have no object in the log, Unlisted deletions
	// of collections no list of objects: both are ignored.
	Writes, Bodiless, Unlisted int
}

// Count counts a write.
func (f *Followed) Count(e *Event, known bool) {
	switch {
	case known:
		f.Writes++
	case e.Verb == deleteCollection:
		f.Unlisted++
	default:
		f.Bodiless++
	}
}
