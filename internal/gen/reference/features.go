// Package reference makes pages about an executable from its tables: features and rights, metrics, the command line. Only generators and tests use it.
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

// Features is the page about the features of an executable, and the rights of each in its clusters.
func Features[C, E any](x manifests.Executable[C, E]) string {
	var b strings.Builder
	cfg := x.Everything()
	fmt.Fprintf(&b, "# What %s does\n\nGenerated from the table of its features: do not edit.\nEvery replica runs a feature, where nothing else is said.\n\n", x.Name)
	for _, row := range x.Rows {
		by := "always on"
		if row.Switch != "" {
			by = "`" + row.Switch + "`"
		}
		if !row.Built() {
			by += ", which is not part of this version"
		}
		if row.Runs == feature.Leader {
			by += ", on the leader"
		}
		does := row.Doc
		if row.Path != "" {
			does += " Path: `" + row.Path + "`."
		}
		fmt.Fprintf(&b, "- **%s** (%s): %s\n", row.Name, by, does)
	}
	fmt.Fprintf(&b, "\n## Rights\n\n`%s rights --config <file> --cluster <cluster>` prints the roles for a configuration. By feature they are:\n\n", x.Name)
	for _, row := range x.Rows {
		rights := feature.Rights([]feature.Row[C, E]{row}, cfg, nil)
		scopes := slices.SortedFunc(maps.Keys(rights), func(a, b feature.Scope) int {
			return strings.Compare(string(a.Cluster)+"/"+a.Namespace, string(b.Cluster)+"/"+b.Namespace)
		})
		for _, scope := range scopes {
			var rules []string
			for _, rule := range rights[scope] {
				rules = append(rules, right(rule))
			}
			in := ""
			if scope.Namespace != "" {
				in = ", namespace `" + scope.Namespace + "`"
			}
			fmt.Fprintf(&b, "- **%s**, %s%s: %s\n", row.Name, scope.Cluster, in, strings.Join(rules, "; "))
		}
	}
	return b.String()
}

// right is a rule as text: the resources, with their API group unless that is the core group, and the verbs.
func right(rule rbacv1.PolicyRule) string {
	text := strings.Join(rule.Resources, ", ")
	if group := rule.APIGroups[0]; group != "" {
		text += " of " + group
	}
	if len(rule.ResourceNames) > 0 {
		text += " named `" + strings.Join(rule.ResourceNames, "`, `") + "`"
	}
	return strings.ReplaceAll(text+" ("+strings.Join(rule.Verbs, ", ")+")", "*", `\*`)
}
