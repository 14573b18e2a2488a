package rules

import (
	"fmt"
	"strings"
)

// Reference returns the rules as rows of a Markdown table.
func Reference() string {
	var out strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.id, strings.TrimSuffix(r.resource+"."+r.group, "."), strings.Join(r.verbs, ", "), strings.Join(r.subresources, ", "),
			strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(r.says))
	}
	return out.String()
}
