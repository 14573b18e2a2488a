package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// graphPage returns the reference page of the graph, generated from the table.
func graphPage() string {
	var out strings.Builder
	out.WriteString(`# The dependency graph

Generated from the table of edges.

A vertex is a kind, a namespace and a name: something refers to such an object, or it is watched, but it need not exist.
An edge leads from an object to one that needs it, and ends at Seeds: a seed's clients may reach whatever leads to their Seed.

`)
	writeDiagram(&out, relation.Watches)
	out.WriteString("\n## Edges\n\nFields are those of the watched kind, which an arrow leads to or comes from. *Direct* edges open their start only; under\n" +
		"`writeScope: Owned` only *managed* edges open the start for writes. The metrics call changes `CreateOrUpdate` and `Delete`,\n" +
		"those of Gardenlets and CertificateSigningRequests `Create` and `Delete`.\n")
	shown := map[string]bool{}
	for _, w := range relation.Watches {
		fmt.Fprintf(&out, "\n**%s** (`%s`):\n\n", relation.Schema.Names[w.Kind], w.Resource.GroupVersion())
		for _, r := range w.Rows {
			writeRow(&out, r, []graph.Kind{w.Kind})
			shown[r.ID] = true
		}
	}
	out.WriteString("\nThe label of Namespaces, too, is watched, as a fact for GE-57.\n")
	out.WriteString("\n## Self-hosted shoots\n\nThe ShootAuthorizer has a separate graph, whose sinks are Shoots, without the objects that belong to a Shoot by their name (GE-53 to GE-56).\nThese edges are its own:\n\n")
	var same []string
	for _, w := range relation.SelfHosted {
		for _, r := range w.Rows {
			if shown[r.ID] {
				same = append(same, r.ID)
			} else {
				writeRow(&out, r, nil)
			}
		}
	}
	fmt.Fprintf(&out, "\nIt also has %s.\n", strings.Join(same, ", "))
	return out.String()
}

// writeRow writes an edge as an item of a list. Below the name of a kind it leaves out the end of this kind.
func writeRow(out *strings.Builder, r relation.Row, below []graph.Kind) {
	switch {
	case slices.Equal(r.To, below):
		fmt.Fprintf(out, "- %s ← %s", r.ID, nameList(r.From))
	case slices.Equal(r.From, below):
		fmt.Fprintf(out, "- %s → %s", r.ID, nameList(r.To))
	default:
		fmt.Fprintf(out, "- %s: %s → %s", r.ID, nameList(r.From), nameList(r.To))
	}
	separator := ": "
	for _, field := range r.Fields {
		fmt.Fprintf(out, "%s`%s`", separator, field)
		separator = ", "
	}
	if r.When != "" {
		fmt.Fprintf(out, "; %s", escapeCell(r.When))
	}
	if len(r.Needs) > 0 {
		fmt.Fprintf(out, "; reads the %s", nameList(r.Needs))
	}
	if class := map[graph.Class]string{graph.Manages: "managed", graph.Direct: "direct"}[r.Class]; class != "" {
		fmt.Fprintf(out, "; *%s*", class)
	}
	out.WriteString("\n")
}

// writeDiagram writes the edges between kinds as a Mermaid diagram; dotted edges are direct.
func writeDiagram(out *strings.Builder, table relation.Table) {
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
					lines = append(lines, fmt.Sprintf("    %s%s%s\n", relation.Schema.Names[from], arrow, relation.Schema.Names[to]))
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
		texts[i] = relation.Schema.Names[kind]
	}
	return strings.Join(texts, ", ")
}

func escapeCell(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "|", "\\|").Replace(text)
}
