package rules

import "strings"

// Reference returns for each rule its ID, its resource and subresources, its verbs and its objects, as cells of a table.
func Reference() [][]string {
	var rows [][]string
	for _, r := range rules {
		resource := strings.Join(append([]string{strings.TrimSuffix(r.resource+"."+r.group, ".")}, r.subresources...), ", /")
		rows = append(rows, []string{r.id, resource, strings.Join(r.verbs, ", "), r.says})
	}
	return rows
}
