package feature

import (
	"fmt"
	"slices"
	"strings"
)

// Reference is the page about the features of an executable, and the rights of each in its clusters.
func Reference[C, E any](executable string, rows []Row[C, E], cfg *C) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What %s does\n\nGenerated from the table of its features: do not edit.\n\n", executable)
	b.WriteString("| feature | switched on by | runs on | what it does |\n|---|---|---|---|\n")
	for _, row := range rows {
		by := "always on"
		if row.Switch != "" {
			by = "`" + row.Switch + "`"
		}
		if !row.Built() {
			by += ", which is not part of this version"
		}
		does := row.Doc
		if row.Path != "" {
			does += " Served under `" + row.Path + "`."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.Name, by, row.Runs, does)
	}
	fmt.Fprintf(&b, "\n## Rights\n\n`%s rights --config <file> --cluster <cluster>` prints the roles for a configuration. By feature they are:\n\n", executable)
	b.WriteString("| feature | cluster | resource | verbs | restricted to |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		rights := Rights([]Row[C, E]{row}, cfg, nil)
		scopes := make([]Scope, 0, len(rights))
		for scope := range rights {
			scopes = append(scopes, scope)
		}
		slices.SortFunc(scopes, func(a, b Scope) int {
			return strings.Compare(string(a.Cluster)+"/"+a.Namespace, string(b.Cluster)+"/"+b.Namespace)
		})
		for _, scope := range scopes {
			for _, rule := range rights[scope] {
				group := rule.APIGroups[0]
				if group == "" {
					group = "core"
				}
				var only []string
				if scope.Namespace != "" {
					only = append(only, "namespace `"+scope.Namespace+"`")
				}
				if len(rule.ResourceNames) > 0 {
					only = append(only, "`"+strings.Join(rule.ResourceNames, "`, `")+"`")
				}
				fmt.Fprintf(&b, "| %s | %s | %s: %s | %s | %s |\n", row.Name, scope.Cluster, group, strings.Join(rule.Resources, ", "), strings.Join(rule.Verbs, ", "), strings.Join(only, ", "))
			}
		}
	}
	return b.String()
}
