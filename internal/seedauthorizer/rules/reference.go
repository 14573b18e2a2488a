package rules

import (
	"fmt"
	"strings"
)

// SeedReference returns the rules of the SeedAuthorizer, the steps of a decision and the special cases: rows of tables in
// Markdown.
func SeedReference() (rules, stepRows, specials string) {
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", s.id, s.when, s.then)
	}
	return seeds.rows(&client{Seed: "<seed>"}), out.String(), seeds.specialRows()
}

// ShootReference returns the rules of the ShootAuthorizer, its special cases and the rules for gardenadm: rows of tables in
// Markdown.
func ShootReference() (rules, specials, gardenadm string) {
	var out strings.Builder
	for _, r := range gardenadmRules {
		resource := strings.TrimSuffix(name(r.resource, r.group)+"/"+r.subresource, "/")
		fmt.Fprintf(&out, "| %s | %s | %s |\n", resource, strings.Join(r.verbs, ", "), r.of)
	}
	return shoots.rows(&client{Namespace: "<namespace>", Shoot: "<shoot>"}), shoots.specialRows(), out.String()
}

func (t *table) rows(c *client) string {
	var out strings.Builder
	for _, r := range t.rules {
		r.write(&out, "", c)
		if r.extension != nil {
			r.extension.write(&out, " (extensions)", c)
		}
	}
	return out.String()
}

func (t *table) specialRows() string {
	var out strings.Builder
	seen := map[string]bool{}
	write := func(list []special) {
		for _, s := range list {
			if !seen[s.id] {
				seen[s.id] = true
				fmt.Fprintf(&out, "| %s | %s |\n", s.id, escape(s.says))
			}
		}
	}
	for _, r := range t.rules {
		write(r.specials)
		if r.extension != nil {
			write(r.extension.specials)
		}
	}
	return out.String()
}

func (r *rule) write(out *strings.Builder, who string, c *client) {
	resource := name(r.resource, r.group) + who
	if r.seedReads {
		resource += " ¹"
	}
	if r.referenced {
		resource += " ²"
	}
	if r.namespace != nil {
		resource += " in namespace " + escape(r.namespace(c))
	}
	var selectors, specials []string
	for _, s := range r.selectors {
		if s.label != nil {
			own := s.label(c)
			selectors = append(selectors, "label `"+own.key+"="+own.value+"`")
			continue
		}
		values := s.fields(c)
		for i, key := range s.keys {
			selectors = append(selectors, "field `"+key+"="+values[i]+"`")
		}
	}
	for _, s := range r.specials {
		specials = append(specials, s.id)
	}
	fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s |\n", r.id, resource, strings.Join(r.always.names(), ", "), strings.Join(r.path.names(), ", "),
		strings.Join(r.subresources, ", "), strings.Join(selectors, ", "), strings.Join(specials, ", "))
}

// name returns a resource as kubectl names it.
func name(resource, group string) string { return strings.TrimSuffix(resource+"."+group, ".") }

func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "|", "\\|").Replace(text)
}
