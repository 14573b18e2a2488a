package auditlog

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Event is what matters of an event. Its texts are parts of the chunk that it was read in: who keeps one for long clones it.
type Event struct {
	// File and Line say where it is, for people; lines count from 1.
	File string
	Line int
	// FileNumber is the place of the file among those that are read, from 0.
	FileNumber int

	Stage, Verb, RequestURI string
	// User and Groups are those of the impersonated user, if there is one: kube-apiserver decides about that user.
	User   string
	Groups []string
	// Resource is empty if the request was for none.
	APIGroup, Resource, Subresource, Namespace, Name string
	// Code is that of the response, 0 if there was none.
	Code int
	// Decision and Reason are what the API server's authorizers said: allow or forbid; empty if the log does not tell.
	Decision, Reason string
	// Received is when the request came.
	Received string
	// RequestObject and ResponseObject are JSON, empty if the log does not have them.
	RequestObject, ResponseObject string
}

// Allowed says whether the API server allowed the request, by its decision or else by the code, and whether the log tells.
func (e *Event) Allowed() (allowed, known bool) {
	if e.Decision != "" {
		return e.Decision == "allow", true
	}
	known = e.Code != 0 && e.Code != http.StatusUnauthorized && e.Code < http.StatusInternalServerError
	return e.Code != http.StatusForbidden, known
}

// Wrote says whether the request changed an object, or one of some of its subresources.
func (e *Event) Wrote(subresources ...string) bool {
	switch e.Verb {
	case "create", "update", "patch", "delete":
		return e.Code >= 200 && e.Code <= 299 && (e.Subresource == "" || slices.Contains(subresources, e.Subresource))
	}
	return false
}

// errNoEvent says that a line is JSON, and no audit event.
var errNoEvent = errors.New("is no event of audit.k8s.io/v1")

var errNoJSON = errors.New("is no JSON object")

// Annotations with which kube-apiserver tells of a decision.
const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
)

// decode reads a line into an empty event.
func (e *Event) decode(line string) error {
	s := scanner{text: line}
	var kind, version, impersonated string
	var impersonatedGroups []string
	ok := s.object(func(field string) bool {
		switch field {
		case "kind":
			return s.string(&kind)
		case "apiVersion":
			return s.string(&version)
		case "stage":
			return s.string(&e.Stage)
		case "verb":
			return s.string(&e.Verb)
		case "requestURI":
			return s.string(&e.RequestURI)
		case "requestReceivedTimestamp":
			return s.string(&e.Received)
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
	switch {
	case !ok || s.next() != 0:
		return errNoJSON
	case kind != "Event" || version != "audit.k8s.io/v1":
		return errNoEvent
	}
	if impersonated != "" {
		e.User, e.Groups = impersonated, impersonatedGroups
	}
	return nil
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
		var text string
		if !s.string(&text) {
			return false
		}
		*into = append(*into, text)
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
