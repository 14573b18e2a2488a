package main

import (
	"strings"
	"testing"
)

func TestProblemsOf(t *testing.T) {
	layers := []layer{
		{name: "ground", folders: []string{"low/..."}, together: true, without: []string{"net", "k8s.io/client-go"}, except: []string{"k8s.io/client-go/scheme"}},
		{name: "middle", folders: []string{"mid/...", "kit"}, shared: []string{"kit"}},
		{name: "roof", folders: []string{"roof"}},
	}
	for name, c := range map[string]struct{ file, imported, want string }{
		"a lower layer":                       {"roof/a.go", module + "low/x", ""},
		"a lower layer from the middle":       {"mid/x/a.go", module + "low/x/y", ""},
		"a higher layer":                      {"low/x/a.go", module + "mid/x", "the layer ground may not import from the higher layer middle"},
		"the same layer, together":            {"low/x/a.go", module + "low/y", ""},
		"the same layer":                      {"mid/x/a.go", module + "mid/y", "move what they share"},
		"a shared package of the same layer":  {"mid/x/a.go", module + "kit", ""},
		"into a folder of its own":            {"mid/x/a.go", module + "mid/x/inner", ""},
		"out of a folder":                     {"mid/x/inner/a.go", module + "mid/x", "move what they share"},
		"a package without a layer":           {"new/a.go", "fmt", "new is in no layer"},
		"a folder is exact":                   {"roof/new/a.go", "fmt", "is in no layer"},
		"to a package without a layer":        {"roof/a.go", module + "new", "it is in no layer"},
		"third-party":                         {"low/x/a.go", "net", "the layer ground may not import it"},
		"below third-party":                   {"low/x/a.go", "net/http", "the layer ground may not import it"},
		"third-party with the same beginning": {"low/x/a.go", "netip", ""},
		"third-party that is excepted":        {"low/x/a.go", "k8s.io/client-go/scheme", ""},
		"third-party beside an exception":     {"low/x/a.go", "k8s.io/client-go/rest", "the layer ground may not import it"},
		"third-party where all are allowed":   {"roof/a.go", "net/http", ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := problemsOf(layers, c.file, []string{c.imported})
			switch {
			case c.want == "" && len(problems) != 0:
				t.Errorf("got %v", problems)
			case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want)):
				t.Errorf("got %v, want %s", problems, c.want)
			}
		})
	}
}

// TestRepository checks the imports of the repository itself.
func TestRepository(t *testing.T) {
	if err := check("../../..", layers); err != nil {
		t.Error(err)
	}
}
