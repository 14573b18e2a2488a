package rules

import "strings"

// step describes a step of a decision on the reference page.
type step struct{ id, when, then string }

// steps are the steps on the reference page, in order.
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

// SeedReference returns the rules of the SeedAuthorizer, the steps of a decision and the exceptions, as cells of
// tables.
func SeedReference() (rules, stepRows, exceptions [][]string) {
	for _, s := range steps {
		stepRows = append(stepRows, []string{s.id, s.when, s.then})
	}
	rules, exceptions = seeds.reference(&client{Seed: "<seed>"})
	return rules, stepRows, exceptions
}

// ShootReference returns the rules of the ShootAuthorizer, its exceptions and the rules for gardenadm, as cells of
// tables.
func ShootReference() (rules, exceptions, gardenadm [][]string) {
	for _, r := range gardenadmRules {
		resource := strings.TrimSuffix(name(r.resource, r.group)+"/"+r.subresource, "/")
		gardenadm = append(gardenadm, []string{resource, strings.Join(r.verbs, ", "), string(r.of)})
	}
	rules, exceptions = shoots.reference(&client{Namespace: "<namespace>", Shoot: "<shoot>"})
	return rules, exceptions, gardenadm
}

// reference returns the rules and the exceptions of a table.
func (t *table) reference(c *client) (rules, exceptions [][]string) {
	seen := map[string]bool{}
	add := func(r *rule, who string) {
		rules = append(rules, r.cells(who, c))
		for _, s := range r.exceptions {
			if !seen[s.id] {
				exceptions = append(exceptions, []string{s.id, s.says})
			}
			seen[s.id] = true
		}
	}
	for _, r := range t.rules {
		add(r, "")
		if r.extension != nil {
			add(r.extension, " (extensions)")
		}
	}
	return rules, exceptions
}

// cells returns the ID of a rule, its resource and subresources, the verbs that are always allowed and those by path,
// and its selectors and exceptions.
func (r *rule) cells(who string, c *client) []string {
	resource := strings.Join(append([]string{name(r.resource, r.group)}, r.subresources...), ", /") + who
	if r.seedReads {
		resource += " ¹"
	}
	if r.referenced {
		resource += " ²"
	}
	if r.namespace != nil {
		resource += " in namespace " + r.namespace(c)
	}
	var further []string
	for _, s := range r.selectors {
		if s.label != nil {
			own := s.label(c)
			further = append(further, "label `"+own.key+"="+own.value+"`")
			continue
		}
		values := s.fields(c)
		for i, key := range s.keys {
			further = append(further, "field `"+key+"="+values[i]+"`")
		}
	}
	for _, s := range r.exceptions {
		further = append(further, s.id)
	}
	return []string{r.id, resource, strings.Join(r.always.names(), ", "), strings.Join(r.path.names(), ", "), strings.Join(further, ", ")}
}

// name returns a resource as kubectl names it.
func name(resource, group string) string { return strings.TrimSuffix(resource+"."+group, ".") }
