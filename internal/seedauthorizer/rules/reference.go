package rules

import (
	"fmt"
	"strings"
)

// SeedReference is the reference page of the SeedAuthorizer's rules, made from the table.
func SeedReference() string {
	var out strings.Builder
	out.WriteString(`# Rules of the SeedAuthorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew.

*always* are verbs that are allowed for any object, *by path* those for objects that lead to the client's Seed in the
[dependency graph](graph.md), named ones only. Everything else is left to the next authorizer, with a reason. Rules hold for gardenlets
and extensions alike; where extensions have a rule of their own, it follows that of gardenlets.

| rule | resource | always | by path | subresources | list and watch of several with | special cases |
|---|---|---|---|---|---|---|
`)
	seeds.write(&out, &client{Seed: "<seed>"})
	out.WriteString(`
¹ Under ` + "`readScope: All`" + `, which is the default under profile contract, get, list and watch of these are always allowed, in any namespace and without a selector. Under
` + "`readScope: Related`" + ` the table holds.

² Under ` + "`writeScope: Owned`" + ` update, patch and delete of these need a *managed* edge as the first one of the path.

## Steps of a decision

| step | if | then |
|---|---|---|
`)
	for _, s := range steps {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", s.id, s.when, s.then)
	}
	out.WriteString(`
An object of a watched kind that the graph has not seen yet is read once before SA-14.

## Special cases

| case | what is allowed |
|---|---|
`)
	seeds.writeSpecials(&out)
	return out.String()
}

// ShootReference is the reference page of the ShootAuthorizer's rules.
func ShootReference() string {
	var out strings.Builder
	out.WriteString(`# Rules of the ShootAuthorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew. Steps and columns are those of the [SeedAuthorizer](seed-authorizer-rules.md);
the goal of paths is the client's own Shoot, in a [graph](graph.md#self-hosted-shoots) of its own.

| rule | resource | always | by path | subresources | list and watch of several with | special cases |
|---|---|---|---|---|---|---|
`)
	shoots.write(&out, &client{Namespace: "<namespace>", Shoot: "<shoot>"})
	out.WriteString(`
## Special cases

| case | what is allowed |
|---|---|
`)
	shoots.writeSpecials(&out)
	out.WriteString("| SH-16b | get, list, watch of the own bootstrap token in kube-system, for gardenlets: by the name that follows from the shoot's and a description that names the shoot or a ManagedSeed of the shoot; other tokens not, and extensions none |\n")
	out.WriteString("| SH-16c | delete of a bootstrap token whose description names the shoot, for gardenlets |\n")
	out.WriteString("| SH-23 | whatever the SeedAuthorizer allows an extension, for extensions of a Shoot in namespace garden that is a seed, too: of which a ManagedSeed makes the Seed of its name |\n")
	out.WriteString("\n## gardenadm (SH-22)\n\n| resource | verbs | objects |\n|---|---|---|\n")
	for _, r := range gardenadmRules {
		resource := strings.TrimSuffix(name(r.resource, r.group)+"/"+r.subresource, "/")
		fmt.Fprintf(&out, "| %s | %s | %s |\n", resource, strings.Join(r.verbs, ", "), r.of)
	}
	out.WriteString("\nThe own Shoot is named in the request; a creation carries no name, and ShootRestriction looks at the object's.\n")
	return out.String()
}

func (t *table) write(out *strings.Builder, c *client) {
	for _, r := range t.rules {
		r.write(out, "", c)
		if r.extension != nil {
			r.extension.write(out, " (extensions)", c)
		}
	}
}

func (t *table) writeSpecials(out *strings.Builder) {
	seen := map[string]bool{}
	write := func(list []special) {
		for _, s := range list {
			if !seen[s.id] {
				seen[s.id] = true
				fmt.Fprintf(out, "| %s | %s |\n", s.id, escape(s.says))
			}
		}
	}
	for _, r := range t.rules {
		write(r.specials)
		if r.extension != nil {
			write(r.extension.specials)
		}
	}
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
