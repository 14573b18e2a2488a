package auditlog

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Event has the relevant fields of an event. Its texts are parts of the chunk that it was read from: clone a text to
// keep it for long.
type Event struct {
	// File and Line locate it, for people; lines count from 1.
	File string
	Line int
	// Item is the number of the event in the list of its line, from 1; 0 if the line is an event.
	Item int
	// FileNumber is the place of the file among those that are read, from 0.
	FileNumber int

	// ID is the same for all stages of a request; the client may have chosen it.
	ID string

	Stage, Verb, RequestURI string
	// User and Groups are those of the impersonated user, if there is one: kube-apiserver decides about that user.
	User   string
	Groups []string
	// Resource is empty if the request was for none.
	APIGroup, Resource, Subresource, Namespace, Name string
	// Code is that of the response, 0 if there was none.
	Code int
	// Decision and Reason are the result of the API server's authorizers: allow or forbid; empty if the log has none.
	Decision, Reason string
	// Received is the time at which the request came, Reached the time of the stage.
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

// errNoEvent is the fault of a line that is JSON, but neither an audit event nor a list of them.
var errNoEvent = errors.New("is no event of audit.k8s.io/v1")

const auditVersion = "audit.k8s.io/v1"

var errNoJSON = errors.New("is no JSON object")

// Annotations with which kube-apiserver reports a decision.
const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
)

// decode reads a line: an event, as log files have them, or a list of events, as webhooks get them.
func decode(line string, each func(*Event)) error {
	s := scanner{text: line}
	var e Event
	head, ok := s.event(&e)
	switch {
	case !ok || s.next() != 0:
		return errNoJSON
	case head.version != auditVersion:
		return errNoEvent
	case head.kind == "Event":
		each(&e)
		return nil
	case head.kind == "EventList":
		return decodeItems(head.items, each)
	}
	return errNoEvent
}

// decodeItems reads the events of a list. Nothing of a list counts if one of them is no event, so that it is read twice:
// only one event at a time takes memory.
func decodeItems(items string, each func(*Event)) error {
	if items == "" {
		return nil
	}
	var e Event
	s := scanner{text: items}
	if !s.list(func() bool {
		e = Event{}
		head, ok := s.event(&e)
		// API servers write the items without their type.
		return ok && (head.kind == "" || head.kind == "Event") && (head.version == "" || head.version == auditVersion) &&
			(e.ID != "" || e.Stage != "" || e.Verb != "")
	}) {
		return errNoEvent
	}
	number := 0
	s = scanner{text: items}
	s.list(func() bool {
		number++
		e := Event{}
		_, ok := s.event(&e)
		e.Item = number
		each(&e)
		return ok
	})
	return nil
}

// head is the type of a line, with its items if it is a list.
type head struct{ kind, version, items string }

// event reads an object into an empty event.
func (s *scanner) event(e *Event) (head, bool) {
	var h head
	var impersonated string
	var impersonatedGroups []string
	ok := s.object(func(field string) bool {
		switch field {
		case "kind":
			return s.string(&h.kind)
		case "apiVersion":
			return s.string(&h.version)
		case "items":
			return s.raw(&h.items)
		case "auditID":
			return s.string(&e.ID)
		case "stage":
			return s.string(&e.Stage)
		case "verb":
			return s.string(&e.Verb)
		case "requestURI":
			return s.string(&e.RequestURI)
		case "requestReceivedTimestamp":
			return s.string(&e.Received)
		case "stageTimestamp":
			return s.string(&e.Reached)
		case "user":
			return s.user(&e.User, &e.Groups)
		case "impersonatedUser":
			return s.user(&impersonated, &impersonatedGroups)
		case "objectRef":
			return s.reference(e)
		case "responseStatus":
			return s.code(&e.Code)
		case "annotations":
			return s.annotations(e)
		case "requestObject":
			return s.raw(&e.RequestObject)
		case "responseObject":
			return s.raw(&e.ResponseObject)
		}
		return s.skip()
	})
	if impersonated != "" {
		e.User, e.Groups = impersonated, impersonatedGroups
	}
	return h, ok
}

func (s *scanner) user(name *string, groups *[]string) bool {
	return s.object(func(field string) bool {
		switch field {
		case "username":
			return s.string(name)
		case "groups":
			return s.strings(groups)
		}
		return s.skip()
	})
}

func (s *scanner) reference(e *Event) bool {
	return s.object(func(field string) bool {
		switch field {
		case "resource":
			return s.string(&e.Resource)
		case "subresource":
			return s.string(&e.Subresource)
		case "namespace":
			return s.string(&e.Namespace)
		case "name":
			return s.string(&e.Name)
		case "apiGroup":
			return s.string(&e.APIGroup)
		}
		return s.skip()
	})
}

func (s *scanner) code(code *int) bool {
	return s.object(func(field string) bool {
		if field != "code" {
			return s.skip()
		}
		var text string
		if !s.raw(&text) {
			return false
		}
		n, err := strconv.Atoi(text)
		*code = n
		return err == nil
	})
}

func (s *scanner) annotations(e *Event) bool {
	return s.object(func(key string) bool {
		switch key {
		case decisionAnnotation:
			return s.string(&e.Decision)
		case reasonAnnotation:
			return s.string(&e.Reason)
		}
		return s.skip()
	})
}

// scanner reads JSON from left to right. It is no validator: a value that is skipped is only followed to its end.
type scanner struct {
	text string
	at   int
}

// next skips white space and returns the next byte, 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// object calls field for each member of an object with the value ahead; null has none.
func (s *scanner) object(field func(name string) bool) bool {
	if s.next() == 'n' {
		return s.skip()
	}
	if s.next() != '{' {
		return false
	}
	s.at++
	if s.next() == '}' {
		s.at++
		return true
	}
	for {
		var name string
		if s.next() != '"' || !s.string(&name) || s.next() != ':' {
			return false
		}
		s.at++
		if !field(name) {
			return false
		}
		switch s.next() {
		case ',':
			s.at++
		case '}':
			s.at++
			return true
		default:
			return false
		}
	}
}

// string reads a text; null is the empty one.
func (s *scanner) string(into *string) bool {
	if s.next() == 'n' {
		return s.skip()
	}
	from := s.at
	if s.next() != '"' || !s.skipText() {
		return false
	}
	quoted := s.text[from:s.at]
	if strings.IndexByte(quoted, '\\') < 0 {
		*into = quoted[1 : len(quoted)-1]
		return true
	}
	return json.Unmarshal([]byte(quoted), into) == nil
}

// strings reads a list of texts.
func (s *scanner) strings(into *[]string) bool {
	return s.list(func() bool {
		var text string
		ok := s.string(&text)
		*into = append(*into, text)
		return ok
	})
}

// list calls item for each item of a list with the value ahead; null has none.
func (s *scanner) list(item func() bool) bool {
	if s.next() == 'n' {
		return s.skip()
	}
	if s.next() != '[' {
		return false
	}
	s.at++
	if s.next() == ']' {
		s.at++
		return true
	}
	for {
		if !item() {
			return false
		}
		switch s.next() {
		case ',':
			s.at++
		case ']':
			s.at++
			return true
		default:
			return false
		}
	}
}

// raw reads any value as it is; null is nothing.
func (s *scanner) raw(into *string) bool {
	s.next()
	from := s.at
	if !s.skip() {
		return false
	}
	if text := s.text[from:s.at]; text != "null" {
		*into = text
	}
	return true
}

// skip goes to the end of the next value.
func (s *scanner) skip() bool {
	switch s.next() {
	case '"':
		return s.skipText()
	case '{', '[':
		return s.skipNested()
	case 0, '}', ']', ',', ':':
		return false
	}
	for s.at < len(s.text) && strings.IndexByte(",]} \t\r\n", s.text[s.at]) < 0 {
		s.at++
	}
	return true
}

func (s *scanner) skipNested() bool {
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			if !s.skipText() {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return true
			}
		}
		s.at++
	}
	return false
}

// skipText goes behind a text, whose quotation mark is ahead.
func (s *scanner) skipText() bool {
	for s.at++; ; {
		end := strings.IndexByte(s.text[s.at:], '"')
		if end < 0 {
			return false
		}
		s.at += end + 1
		slashes := 0
		for i := s.at - 2; i >= 0 && s.text[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 0 {
			return true
		}
	}
}
