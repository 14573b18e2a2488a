package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Event has the relevant fields of an event.
type Event struct {
	// File and Line are the location of the event for people; lines count from 1.
	File string
	Line int
	// Item is the number of the event in the list of its line, from 1; 0 if the line is an event.
	Item int
	// FileNumber is the index of the file among the files that are read.
	FileNumber int

	// ID is the same for all stages of a request. Clients may choose it.
	ID string

	Stage, Verb, RequestURI string
	// User and Groups are those of the impersonated user, if there is one, as kube-apiserver decides on that user.
	User   string
	Groups []string
	// Resource is empty if the request was not for a resource.
	APIGroup, Resource, Subresource, Namespace, Name string
	// Code is the response's status code, 0 if there was none.
	Code int
	// Decision and Reason are the result of the API server's authorizers: allow or forbid; empty if the log has none.
	Decision, Reason string
	// Received is the time at which the request arrived, Reached the time of the stage.
	Received, Reached string
	// RequestObject and ResponseObject are JSON, empty if the log does not have them.
	RequestObject, ResponseObject string
}

// Allowed reports whether the API server allowed the request, by its decision or else by the code; known is false if
// the log has neither.
func (e *Event) Allowed() (allowed, known bool) {
	if e.Decision != "" {
		return e.Decision == "allow", true
	}
	known = e.Code != 0 && e.Code != http.StatusUnauthorized && e.Code < http.StatusInternalServerError
	return e.Code != http.StatusForbidden, known
}

var (
	// errNoEvent is the error for a line of JSON that is neither an audit event nor a list of them.
	errNoEvent = errors.New("is no event of audit.k8s.io/v1")
	errNoJSON  = errors.New("is no JSON object")
)

const auditVersion = "audit.k8s.io/v1"

// message is a line of a log: an event, or a list of events. It has only the relevant fields, so that other fields
// may have any form.
type message struct {
	metav1.TypeMeta
	// Items are the items of a list.
	Items json.RawMessage `json:"items"`

	AuditID                  string          `json:"auditID"`
	Stage                    string          `json:"stage"`
	Verb                     string          `json:"verb"`
	RequestURI               string          `json:"requestURI"`
	RequestReceivedTimestamp string          `json:"requestReceivedTimestamp"`
	StageTimestamp           string          `json:"stageTimestamp"`
	User                     account         `json:"user"`
	ImpersonatedUser         account         `json:"impersonatedUser"`
	RequestObject            json.RawMessage `json:"requestObject"`
	ResponseObject           json.RawMessage `json:"responseObject"`
	ObjectRef                struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations struct {
		Decision string `json:"authorization.k8s.io/decision"`
		Reason   string `json:"authorization.k8s.io/reason"`
	} `json:"annotations"`
}

type account struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

// decode decodes a line: an event, as in log files, or a list of events, as for webhooks. A list with an invalid item
// counts as malformed as a whole, so it is read twice: this way only one event at a time is in memory.
func decode(line []byte, each func(*Event)) error {
	var m message
	switch err := kjson.UnmarshalCaseSensitivePreserveInts(line, &m); {
	case err != nil:
		return errNoJSON
	case m.APIVersion != auditVersion:
		return errNoEvent
	case m.Kind == "Event":
		each(m.event(0))
		return nil
	case m.Kind != "EventList":
		return errNoEvent
	}
	if err := m.eachItem(func(*Event) {}); err != nil {
		return err
	}
	return m.eachItem(each)
}

// eachItem decodes the items of a list. API servers write them without their types.
func (m *message) eachItem(do func(*Event)) error {
	if body(m.Items) == "" {
		return nil
	}
	items := json.NewDecoder(bytes.NewReader(m.Items))
	if start, _ := items.Token(); start != json.Delim('[') {
		return errNoEvent
	}
	for number := 1; items.More(); number++ {
		var raw json.RawMessage
		var item message
		if items.Decode(&raw) != nil || kjson.UnmarshalCaseSensitivePreserveInts(raw, &item) != nil || !item.isItem() {
			return errNoEvent
		}
		do(item.event(number))
	}
	return nil
}

func (m *message) isItem() bool {
	return (m.Kind == "" || m.Kind == "Event") && (m.APIVersion == "" || m.APIVersion == auditVersion) &&
		(m.AuditID != "" || m.Stage != "" || m.Verb != "")
}

func (m *message) event(item int) *Event {
	who := m.User
	if m.ImpersonatedUser.Username != "" {
		who = m.ImpersonatedUser
	}
	return &Event{
		Item: item, ID: m.AuditID, Stage: m.Stage, Verb: m.Verb, RequestURI: m.RequestURI, User: who.Username, Groups: who.Groups,
		APIGroup: m.ObjectRef.APIGroup, Resource: m.ObjectRef.Resource, Subresource: m.ObjectRef.Subresource,
		Namespace: m.ObjectRef.Namespace, Name: m.ObjectRef.Name, Code: m.ResponseStatus.Code,
		Decision: m.Annotations.Decision, Reason: m.Annotations.Reason,
		Received: m.RequestReceivedTimestamp, Reached: m.StageTimestamp,
		RequestObject: body(m.RequestObject), ResponseObject: body(m.ResponseObject),
	}
}

// body returns an object of an event; null is empty.
func body(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}
