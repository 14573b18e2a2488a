package explain

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Question is a request that is to be decided.
type Question struct {
	User          string   `json:"user"`
	Groups        []string `json:"groups,omitempty"`
	Verb          string   `json:"verb"`
	Group         string   `json:"apiGroup,omitempty"`
	Resource      string   `json:"resource"`
	Subresource   string   `json:"subresource,omitempty"`
	Namespace     string   `json:"namespace,omitempty"`
	Name          string   `json:"name,omitempty"`
	FieldSelector string   `json:"fieldSelector,omitempty"`
	LabelSelector string   `json:"labelSelector,omitempty"`
}

// Values are the question as query parameters.
func (q *Question) Values() url.Values {
	values := url.Values{"group": q.Groups}
	for key, value := range map[string]string{
		"user": q.User, "verb": q.Verb, "apiGroup": q.Group, "resource": q.Resource, "subresource": q.Subresource,
		"objectNamespace": q.Namespace, "objectName": q.Name, "fieldSelector": q.FieldSelector, "labelSelector": q.LabelSelector,
	} {
		if value != "" {
			values.Set(key, value)
		}
	}
	return values
}

// QuestionOf reads query parameters, which have the names of the form's fields.
func QuestionOf(values url.Values) Question {
	return Question{
		User: values.Get("user"), Groups: values["group"], Verb: values.Get("verb"), Group: values.Get("apiGroup"), Resource: values.Get("resource"),
		Subresource: values.Get("subresource"), Namespace: values.Get("objectNamespace"), Name: values.Get("objectName"),
		FieldSelector: values.Get("fieldSelector"), LabelSelector: values.Get("labelSelector"),
	}
}

// Attributes are the question as an authorizer is asked it.
func (q *Question) Attributes() (authorizer.AttributesRecord, error) {
	a := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: q.User, Groups: q.Groups}, Verb: q.Verb, APIGroup: q.Group, Resource: q.Resource, Subresource: q.Subresource,
		Namespace: q.Namespace, Name: q.Name, ResourceRequest: true,
	}
	if q.FieldSelector != "" {
		selector, err := fields.ParseSelector(q.FieldSelector)
		if err != nil {
			return a, fmt.Errorf("fieldSelector: %w", err)
		}
		a.FieldSelectorRequirements = selector.Requirements()
	}
	if q.LabelSelector != "" {
		selector, err := labels.Parse(q.LabelSelector)
		if err != nil {
			return a, fmt.Errorf("labelSelector: %w", err)
		}
		a.LabelSelectorRequirements, _ = selector.Requirements()
	}
	switch {
	case q.User == "":
		return a, fmt.Errorf("user is missing")
	case q.Verb == "":
		return a, fmt.Errorf("verb is missing")
	case q.Resource == "":
		return a, fmt.Errorf("resource is missing")
	}
	return a, nil
}
