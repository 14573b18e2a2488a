package authorization

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// reviewSpec has the fields of a review that are read (AE-11).
type reviewSpec struct {
	User  string              `json:"user"`
	UID   string              `json:"uid"`
	Extra map[string][]string `json:"extra"`
	// Groups is the field of v1, Group the field of v1beta1.
	Groups                []string               `json:"groups"`
	Group                 []string               `json:"group"`
	ResourceAttributes    *resourceAttributes    `json:"resourceAttributes"`
	NonResourceAttributes *nonResourceAttributes `json:"nonResourceAttributes"`

	groups []string
}

type resourceAttributes struct {
	Namespace     string       `json:"namespace"`
	Verb          string       `json:"verb"`
	Group         string       `json:"group"`
	Version       string       `json:"version"`
	Resource      string       `json:"resource"`
	Subresource   string       `json:"subresource"`
	Name          string       `json:"name"`
	FieldSelector *rawOrParsed `json:"fieldSelector"`
	LabelSelector *rawOrParsed `json:"labelSelector"`
}

type nonResourceAttributes struct {
	Path string `json:"path"`
	Verb string `json:"verb"`
}

// rawOrParsed is a selector of either form; the parsed form takes precedence.
type rawOrParsed struct {
	RawSelector  string        `json:"rawSelector"`
	Requirements []requirement `json:"requirements"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// attributes returns the attributes for the authorizer. If the review has neither kind of attributes, all are empty,
// including the user (AE-10).
func (r *review) attributes() authorizer.Attributes {
	spec := &r.Spec
	who := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.groups, Extra: spec.Extra}
	switch {
	case spec.ResourceAttributes != nil:
		in := spec.ResourceAttributes
		record := authorizer.AttributesRecord{
			User: who, Verb: in.Verb, Namespace: in.Namespace, APIGroup: in.Group, APIVersion: in.Version,
			Resource: in.Resource, Subresource: in.Subresource, Name: in.Name, ResourceRequest: true,
		}
		if in.LabelSelector != nil {
			record.LabelSelectorRequirements, record.LabelSelectorParsingErr = in.LabelSelector.labels()
		}
		if in.FieldSelector != nil {
			record.FieldSelectorRequirements, record.FieldSelectorParsingErr = in.FieldSelector.fields()
		}
		return record
	case spec.NonResourceAttributes != nil:
		return authorizer.AttributesRecord{User: who, Verb: spec.NonResourceAttributes.Verb, Path: spec.NonResourceAttributes.Path}
	}
	return authorizer.AttributesRecord{}
}

var labelOperators = map[string]selection.Operator{
	"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
}

// labels returns the valid requirements, and the errors of the others. To drop a requirement is safe: requirements
// are joined by "and", so the request only becomes wider.
func (s *rawOrParsed) labels() (labels.Requirements, error) {
	if len(s.Requirements) == 0 {
		if s.RawSelector == "" {
			return nil, nil
		}
		selector, err := labels.Parse(s.RawSelector)
		if err != nil {
			return nil, err
		}
		requirements, _ := selector.Requirements()
		return requirements, nil
	}
	var result labels.Requirements
	var errs []error
	for _, r := range s.Requirements {
		operator, known := labelOperators[r.Operator]
		if !known {
			errs = append(errs, fmt.Errorf("%q is not a valid label selector operator", r.Operator))
			continue
		}
		parsed, err := labels.NewRequirement(r.Key, operator, r.Values)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		result = append(result, *parsed)
	}
	return result, joined(errs)
}

// fields is labels for field selectors, which only have equality.
func (s *rawOrParsed) fields() (fields.Requirements, error) {
	if len(s.Requirements) == 0 {
		if s.RawSelector == "" {
			return nil, nil
		}
		selector, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, err
		}
		return selector.Requirements(), nil
	}
	var result fields.Requirements
	var errs []error
	for _, r := range s.Requirements {
		parsed, err := r.field()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		result = append(result, parsed)
	}
	return result, joined(errs)
}

func (r *requirement) field() (fields.Requirement, error) {
	operator := selection.Equals
	switch {
	case len(r.Values) > 1:
		return fields.Requirement{}, errors.New("fieldSelectors do not yet support multiple values")
	case r.Operator == "In" && len(r.Values) != 1:
		return fields.Requirement{}, errors.New("fieldSelectors in must have one value")
	case r.Operator == "In":
	case r.Operator == "NotIn" && len(r.Values) != 1:
		return fields.Requirement{}, errors.New("fieldSelectors not in must have one value")
	case r.Operator == "NotIn":
		operator = selection.NotEquals
	case r.Operator == "Exists", r.Operator == "DoesNotExist":
		return fields.Requirement{}, fmt.Errorf("fieldSelectors do not yet support %s", r.Operator)
	default:
		return fields.Requirement{}, fmt.Errorf("%q is not a valid field selector operator", r.Operator)
	}
	return fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]}, nil
}
