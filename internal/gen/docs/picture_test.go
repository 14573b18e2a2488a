package main

import (
	"os"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestPicture: doc.go of package relation is what make generate writes, and its picture shows every row.
func TestPicture(t *testing.T) {
	written, err := os.ReadFile("../../seedauthorizer/relation/doc.go")
	must.Succeed(t, err)
	expect.DeepEqual(t, string(written), relationDoc(), "make generate would change doc.go")
	lines := strings.Join(picture(relation.Watches), "\n")
	for _, w := range relation.Watches {
		for _, r := range w.Rows {
			for _, from := range r.From {
				expect.Contains(t, lines, "─ "+relation.Schema.Names[from]+" [",
					"%s is not drawn", relation.Schema.Names[from])
			}
			if !strings.Contains(lines, "["+r.ID) && !strings.Contains(lines, ", "+r.ID) {
				t.Errorf("%s is not drawn", r.ID)
			}
		}
	}
}

// TestPictureOnce: a kind's own lines stand in one place, whatever leads to it in others, and a circle ends.
func TestPictureOnce(t *testing.T) {
	table := relation.Table{
		{Kind: relation.Shoot, Rows: []relation.Row{{ID: "A", From: []graph.Kind{relation.Shoot}, To: []graph.Kind{relation.Seed}}, {ID: "B", From: []graph.Kind{relation.Secret}, To: []graph.Kind{relation.Shoot}}, {ID: "C", From: []graph.Kind{relation.Secret}, To: []graph.Kind{relation.Shoot}}}},
		{Kind: relation.ManagedSeed, Rows: []relation.Row{{ID: "D", From: []graph.Kind{relation.ManagedSeed}, To: []graph.Kind{relation.Shoot}}, {ID: "E", From: []graph.Kind{relation.ManagedSeed}, To: []graph.Kind{relation.Seed}}, {ID: "F", From: []graph.Kind{relation.Seed}, To: []graph.Kind{relation.ManagedSeed}}}},
	}
	want := `Seed
├─ ManagedSeed [E]
│  └─ Seed [F] …
└─ Shoot [A]
   ├─ ManagedSeed [D] …
   └─ Secret [B, C]`
	expect.DeepEqual(t, strings.Join(picture(table), "\n"), want)
}
