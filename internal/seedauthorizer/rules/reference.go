package rules

import "strings"

// SeedReference returns the rules of the SeedAuthorizer, the steps of a decision and the special cases, as cells of tables.
func SeedReference() (rules, stepRows, specials [][]string) {
	for _, s := range steps {
		stepRows = append(stepRows, []string{s.id, s.when, s.then})
	}
	rules, specials = seeds.reference(&client{Seed: "<seed>"})
	return rules, stepRows, specials
}

// ShootReference returns the rules of the ShootAuthorizer, its special cases and the rules for gardenadm, as cells of tables.
func ShootReference() (rules, specials, gardenadm [][]string) {
	for _, r := range gardenadmRules {
		resource := strings.TrimSuffix(name(r.resource, r.group)+"/"+r.subresource, "/")
		gardenadm = append(gardenadm, []string{resource, strings.Join(r.verbs, ", "), string(r.of)})
	}
	rules, specials = shoots.reference(&client{Namespace: "<namespace>", Shoot: "<shoot>"})
	return rules, specials, gardenadm
}

// reference returns the rules and the special cases of a table.
func (t *table) reference(c *client) (rules, specials [][]string) {
	seen := map[string]bool{}
	add := func(r *rule, who string) {
		rules = append(rules, r.cells(who, c))
		for _, s := range r.specials {
			if !seen[s.id] {
				specials = append(specials, []string{s.id, s.says})
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
	return rules, specials
}

// cells returns the ID of a rule, its resource and subresources, the verbs that are always allowed and those by path, and its selectors
// and special cases.
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
	for _, s := range r.specials {
		further = append(further, s.id)
	}
	return []string{r.id, resource, strings.Join(r.always.names(), ", "), strings.Join(r.path.names(), ", "), strings.Join(further, ", ")}
}

// name returns a resource as kubectl names it.
func name(resource, group string) string { return strings.TrimSuffix(resource+"."+group, ".") }
