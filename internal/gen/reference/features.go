// Package reference generates pages about an executable from its tables: features and rights, metrics, the command
// line. Only generators and tests use it.
package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/feature"
)

// Features returns the page about the features of an executable, and the rights of each in its clusters.
func Features[C, E any](x manifests.Executable[C, E]) string {
	var b strings.Builder
	cfg := x.Everything()
	fmt.Fprintf(&b, "# What %s does\n\nGenerated from its table: do not edit.\n", x.Name)
	b.WriteString("A feature without a key is always on; every replica runs it unless it says leader.\n\n")
	for _, row := range x.Rows {
		var where []string
		if row.Switch != "" {
			where = append(where, "`"+row.Switch+"`")
		}
		if row.Runs == feature.Leader {
			where = append(where, "leader")
		}
		in, path := "", ""
		if len(where) > 0 {
			in = " (" + strings.Join(where, ", ") + ")"
		}
		if row.Path != "" {
			path = " `" + row.Path + "`"
		}
		fmt.Fprintf(&b, "- **%s**%s%s: %s\n", row.Name, path, in, row.Doc)
	}
	fmt.Fprintf(&b, "\n## Rights\n\n`%s rights` prints them for a configuration; *read* means get, list and watch.\n\n", x.Name)
	for _, row := range x.Rows {
		rights := feature.Rights([]feature.Row[C, E]{row}, cfg, nil)
		scopes := slices.SortedFunc(maps.Keys(rights), func(a, b feature.Scope) int {
			return strings.Compare(string(a.Cluster)+"/"+a.Namespace, string(b.Cluster)+"/"+b.Namespace)
		})
		for _, scope := range scopes {
			in := ""
			if len(x.Clusters) > 1 {
				in = " " + string(scope.Cluster)
			}
			if scope.Namespace != "" {
				in += " `" + scope.Namespace + "`"
			}
			fmt.Fprintf(&b, "- **%s**%s: %s\n", row.Name, in, rightsText(rights[scope]))
		}
	}
	return b.String()
}

// rightsText returns rules as text: the resources by verbs and by API group, which is left out for the core group.
func rightsText(rules []rbacv1.PolicyRule) string {
	type of struct{ verbs, group, names string }
	var order []of
	resources := map[of][]string{}
	for _, rule := range rules {
		o := of{strings.Replace(strings.Join(rule.Verbs, ", "), "get, list, watch", "read", 1), rule.APIGroups[0], strings.Join(rule.ResourceNames, "`, `")}
		if resources[o] == nil {
			order = append(order, o)
		}
		resources[o] = append(resources[o], rule.Resources...)
	}
	slices.SortStableFunc(order, func(a, b of) int { return strings.Compare(a.verbs, b.verbs) })
	var text, before string
	for _, o := range order {
		switch {
		case text == "":
			text = o.verbs + " "
		case o.verbs != before:
			text += "; " + o.verbs + " "
		default:
			text += ", "
		}
		before = o.verbs
		switch list := resources[o]; {
		case o.group == "":
			text += strings.Join(list, ", ")
		case len(list) > 1:
			text += "{" + strings.Join(list, ",") + "}." + o.group
		default:
			text += list[0] + "." + o.group
		}
		if o.names != "" {
			text += " `" + o.names + "`"
		}
	}
	return strings.ReplaceAll(text, "*", `\*`)
}
