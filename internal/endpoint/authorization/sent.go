package authorization

import "strings"

// sentLimit bounds the reviews that are read in kube-apiserver's own form. All strings of such a review share one
// memory block, so a reference to one of them keeps at most sentLimit bytes in memory.
const sentLimit = 4 << 10

// sent reads a review in exactly the form that kube-apiserver sends, from left to right. Invariant: what it accepts,
// it reads like the library; all else is left to the library. So it refuses spaces between tokens, escapes, null
// except for creationTimestamp, unknown fields, and duplicate fields other than strings.
//
// The library took a third of the endpoint's time, and a third of that for a stack that grew again in each stream.
type sent struct {
	text string
	at   int
}

// decodeSent decodes a body into an empty review. If it returns false, the review must not be used.
func (r *review) decodeSent(body []byte) bool {
	if len(body) > sentLimit {
		return false
	}
	s := sent{text: string(body)}
	return s.review(r) && s.at == len(s.text)
}

func (s *sent) review(r *review) bool {
	return s.object(func(field string) bool {
		switch field {
		case "apiVersion":
			return s.string(&r.APIVersion)
		case "kind":
			return s.string(&r.Kind)
		case "metadata":
			return s.skip(`{"creationTimestamp":null}`) || s.skip(`{}`)
		case "spec":
			return s.spec(&r.Spec)
		case "status":
			return s.skip(`{"allowed":false}`)
		}
		return false
	})
}

func (s *sent) spec(spec *reviewSpec) bool {
	return s.object(func(field string) bool {
		switch field {
		case "user":
			return s.string(&spec.User)
		case "uid":
			return s.string(&spec.UID)
		case "groups":
			return s.strings(&spec.Groups)
		case "group":
			return s.strings(&spec.Group)
		case "extra":
			return s.extra(&spec.Extra)
		case "resourceAttributes":
			if spec.ResourceAttributes != nil {
				return false
			}
			spec.ResourceAttributes = &resourceAttributes{}
			return s.resource(spec.ResourceAttributes)
		case "nonResourceAttributes":
			if spec.NonResourceAttributes != nil {
				return false
			}
			spec.NonResourceAttributes = &nonResourceAttributes{}
			return s.nonResource(spec.NonResourceAttributes)
		}
		return false
	})
}

func (s *sent) extra(into *map[string][]string) bool {
	if *into != nil {
		return false
	}
	*into = map[string][]string{}
	return s.object(func(key string) bool {
		var values []string
		if !s.strings(&values) {
			return false
		}
		(*into)[key] = values
		return true
	})
}

func (s *sent) resource(a *resourceAttributes) bool {
	return s.object(func(field string) bool {
		switch field {
		case "namespace":
			return s.string(&a.Namespace)
		case "verb":
			return s.string(&a.Verb)
		case "group":
			return s.string(&a.Group)
		case "version":
			return s.string(&a.Version)
		case "resource":
			return s.string(&a.Resource)
		case "subresource":
			return s.string(&a.Subresource)
		case "name":
			return s.string(&a.Name)
		case "fieldSelector":
			return s.selector(&a.FieldSelector)
		case "labelSelector":
			return s.selector(&a.LabelSelector)
		}
		return false
	})
}

func (s *sent) nonResource(a *nonResourceAttributes) bool {
	return s.object(func(field string) bool {
		switch field {
		case "path":
			return s.string(&a.Path)
		case "verb":
			return s.string(&a.Verb)
		}
		return false
	})
}

func (s *sent) selector(into **rawOrParsed) bool {
	if *into != nil {
		return false
	}
	selector := &rawOrParsed{}
	*into = selector
	return s.object(func(field string) bool {
		switch field {
		case "rawSelector":
			return s.string(&selector.RawSelector)
		case "requirements":
			return s.requirements(&selector.Requirements)
		}
		return false
	})
}

func (s *sent) requirements(into *[]requirement) bool {
	if *into != nil {
		return false
	}
	*into = []requirement{}
	return s.array(func() bool {
		var r requirement
		ok := s.object(func(field string) bool {
			switch field {
			case "key":
				return s.string(&r.Key)
			case "operator":
				return s.string(&r.Operator)
			case "values":
				return s.strings(&r.Values)
			}
			return false
		})
		*into = append(*into, r)
		return ok
	})
}

// skip consumes exactly this text, if it is next.
func (s *sent) skip(text string) bool {
	if !strings.HasPrefix(s.text[s.at:], text) {
		return false
	}
	s.at += len(text)
	return true
}

// next consumes one byte, if it is next.
func (s *sent) next(b byte) bool {
	if s.at == len(s.text) || s.text[s.at] != b {
		return false
	}
	s.at++
	return true
}

// string reads a string of plain ASCII. Of duplicates the last one counts.
func (s *sent) string(into *string) bool {
	if !s.next('"') {
		return false
	}
	for i := s.at; i < len(s.text); i++ {
		switch b := s.text[i]; {
		case b == '"':
			*into = s.text[s.at:i]
			s.at = i + 1
			return true
		case b < ' ' || b == '\\' || b >= 0x80:
			return false
		}
	}
	return false
}

func (s *sent) strings(into *[]string) bool {
	if *into != nil {
		return false
	}
	all := make([]string, 0, 4)
	ok := s.array(func() bool {
		var one string
		if !s.string(&one) {
			return false
		}
		all = append(all, one)
		return true
	})
	*into = all
	return ok
}

// object reads an object, and calls value for each field.
func (s *sent) object(value func(field string) bool) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	for {
		var field string
		if !s.string(&field) || !s.next(':') || !value(field) {
			return false
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

// array reads an array, and calls element for each element.
func (s *sent) array(element func() bool) bool {
	if !s.next('[') {
		return false
	}
	if s.next(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !s.next(',') {
			return s.next(']')
		}
	}
}
