package relation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/graph"
)

// Reference is the reference page of the graph, made from the table.
func Reference() string {
	var out strings.Builder
	out.WriteString(`# The dependency graph

Generated from the table of edges; ` + "`make generate`" + ` writes it anew.

A vertex is a kind, a namespace and a name. An edge leads from what is needed to what needs it, and ends at Seeds: a seed's clients may
reach whatever leads to their Seed. A vertex says that something refers to an object or that the object is watched, not that it exists.

`)
	writeDiagram(&out, Watches)
	out.WriteString("\n## Edges\n\nPaths are those of the watched object. *direct* edges open their start only, nothing that leads to it; over *managed* edges the\nstart is also written under `writeScope: Owned`.\n\n")
	out.WriteString(tableHead)
	writeRows(&out, Watches)
	out.WriteString("\n## Watched kinds\n\n| kind | API | name of changes in metrics |\n|---|---|---|\n")
	for _, w := range Watches {
		group := w.Resource.GroupVersion().String()
		fmt.Fprintf(&out, "| %s | `%s` %s | `%s`, `Delete` |\n", Schema.Names[w.Kind], group, w.Resource.Resource, w.Update)
	}
	out.WriteString("| Namespace | `v1` namespaces | none: only its label is a fact for GE-57 |\n")
	out.WriteString("\nFields that are read and not followed:\n\n")
	for _, w := range Watches {
		for _, field := range slices.Sorted(maps.Keys(w.NotFollowed)) {
			fmt.Fprintf(&out, "- %s `%s`: %s\n", Schema.Names[w.Kind], field, w.NotFollowed[field])
		}
	}
	out.WriteString("\n## Self-hosted shoots\n\nThe ShootAuthorizer has a separate graph, whose sinks are Shoots. The graph does not contain objects that belong to a Shoot by their name (GE-53 to GE-56),\nbecause the client's name is sufficient for them.\n\n")
	writeDiagram(&out, SelfHosted)
	out.WriteString("\n")
	out.WriteString(tableHead)
	writeRows(&out, SelfHosted)
	return out.String()
}

const tableHead = "| rule | watched | from | to | field | condition | also looks at | class |\n|---|---|---|---|---|---|---|---|\n"

func writeRows(out *strings.Builder, table Table) {
	for _, w := range table {
		for _, r := range w.Rows {
			fields := make([]string, len(r.Fields))
			for i, field := range r.Fields {
				fields[i] = "`" + field + "`"
			}
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.ID, Schema.Names[w.Kind], nameList(r.From), nameList(r.To), strings.Join(fields, ", "),
				escapeCell(r.When), nameList(r.Needs), []string{graph.Refers: "", graph.Manages: "managed", graph.Direct: "direct"}[r.Class])
		}
	}
}

// writeDiagram writes the edges between kinds as a Mermaid diagram; dotted edges are direct.
func writeDiagram(out *strings.Builder, table Table) {
	out.WriteString("```mermaid\nflowchart LR\n")
	var lines []string
	for _, w := range table {
		for _, r := range w.Rows {
			arrow := "-->"
			if r.Class == graph.Direct {
				arrow = "-.->"
			}
			for _, from := range r.From {
				for _, to := range r.To {
					lines = append(lines, fmt.Sprintf("    %s %s %s\n", Schema.Names[from], arrow, Schema.Names[to]))
				}
			}
		}
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		out.WriteString(line)
	}
	out.WriteString("```\n")
}

func nameList(kinds []graph.Kind) string {
	texts := make([]string, len(kinds))
	for i, kind := range kinds {
		texts[i] = Schema.Names[kind]
	}
	return strings.Join(texts, ", ")
}

func escapeCell(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "|", "\\|").Replace(text)
}
