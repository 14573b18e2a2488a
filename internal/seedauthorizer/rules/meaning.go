package rules

import (
	"fmt"
	"strings"
)

// step is a step of a decision, as on the reference page and in explanations.
type step struct{ id, when, then string }

// steps are those of the reference page, in their order.
var steps = []step{
	{"SA-1", "the user is no client of a seed", "no opinion"},
	{"SA-2", "the request is not for a resource", "no opinion"},
	{"SA-3", "the resource is not in the table", "no opinion"},
	{"SA-4", "a special case applies", "as it says"},
	{"SA-5", "the namespace is not the one of the rule", "no opinion"},
	{"SA-6", "the subresource is not in the rule", "no opinion"},
	{"SA-7", "the verb is always allowed", "allow"},
	{"SA-8", "the verb is not in the rule", "no opinion"},
	{"SA-9", "list or watch of several objects, and the API server sends selectors", "allow with the rule's selector, else no opinion"},
	{"SA-10", "there is no name", "no opinion"},
	{"SA-12", "delete of an object that the graph does not know, and that does not exist", "allow"},
	{"SA-13", "the object leads to the Seed", "allow"},
	{"SA-14", "otherwise", "no opinion"},
}

// meanings are those of steps within others, for explanations.
var meanings = map[string]string{
	"SA-14":  "the object does not lead to the client's own Seed or Shoot",
	"B-6":    "under writeScope Owned, the object is only referred to, which gives no right to write it",
	"SEL-1":  "it is not known whether the API server sends selectors",
	"SEL-2":  "the request has no selector that limits it to the client's own objects",
	"SEL-3":  "a field selector limits the request to the client's own objects",
	"SEL-4":  "a label selector limits the request to the client's own objects",
	"SEL-7":  "the API server sends no selectors, and the rule has one",
	"SH-16b": "a bootstrap token is for the gardenlet that its description names",
	"SH-16c": "a bootstrap token is deleted by the gardenlet that its description names",
	"SH-22":  "gardenadm has a table of its own",
	"SH-23":  "an extension of a Shoot that is a seed may do what the SeedAuthorizer allows it",
}

// meaning describes the step of a decision.
func (t *table) meaning(v verdict) string {
	if part, found := meanings[v.step]; found {
		return part
	}
	for _, s := range steps {
		if s.id == v.step {
			return strings.Replace(s.when, "the Seed", "the client's own Seed or Shoot", 1)
		}
	}
	for _, r := range t.rules {
		for _, each := range []*rule{r, r.extension} {
			if each == nil {
				continue
			}
			for _, s := range each.specials {
				if s.id == v.step {
					return "special case: " + s.says
				}
			}
		}
	}
	return ""
}

// meaning describes the permission of the rule.
func (r *rule) meaning() string {
	var clauses []string
	if names := r.always.names(); len(names) > 0 {
		clauses = append(clauses, strings.Join(names, ", ")+" of any")
	}
	if names := r.path.names(); len(names) > 0 {
		clauses = append(clauses, strings.Join(names, ", ")+" of those that lead to the client's own")
	}
	if len(r.subresources) > 0 {
		clauses = append(clauses, "with subresource "+strings.Join(r.subresources, ", "))
	}
	for _, s := range r.specials {
		clauses = append(clauses, s.id+": "+s.says)
	}
	return fmt.Sprintf("%s: %s", r.resource, strings.Join(clauses, "; "))
}
