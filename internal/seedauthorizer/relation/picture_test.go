package relation

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPicture: doc.go is what make generate writes, and its picture shows every row.
func TestPicture(t *testing.T) {
	written, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(PackageComment(), string(written)); diff != "" {
		t.Errorf("make generate would change doc.go: %s", diff)
	}
	lines := strings.Join(picture(Watches), "\n")
	for _, w := range Watches {
		for _, r := range w.Rows {
			for _, from := range r.From {
				if !strings.Contains(lines, "─ "+Schema.Names[from]+" [") {
					t.Errorf("%s is not drawn", Schema.Names[from])
				}
			}
			if !strings.Contains(lines, "["+r.ID) && !strings.Contains(lines, ", "+r.ID) {
				t.Errorf("%s is not drawn", r.ID)
			}
		}
	}
}

// TestPictureOnce: a kind's own lines stand in one place, whatever leads to it in others, and a circle ends.
func TestPictureOnce(t *testing.T) {
	table := Table{
		{Kind: Shoot, Rows: []Row{{ID: "A", From: kinds(Shoot), To: kinds(Seed)}, {ID: "B", From: kinds(Secret), To: kinds(Shoot)}, {ID: "C", From: kinds(Secret), To: kinds(Shoot)}}},
		{Kind: ManagedSeed, Rows: []Row{{ID: "D", From: kinds(ManagedSeed), To: kinds(Shoot)}, {ID: "E", From: kinds(ManagedSeed), To: kinds(Seed)}, {ID: "F", From: kinds(Seed), To: kinds(ManagedSeed)}}},
	}
	want := `Seed
├─ ManagedSeed [E]
│  └─ Seed [F] …
└─ Shoot [A]
   ├─ ManagedSeed [D] …
   └─ Secret [B, C]`
	if diff := cmp.Diff(want, strings.Join(picture(table), "\n")); diff != "" {
		t.Error(diff)
	}
}
