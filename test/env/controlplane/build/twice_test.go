package main

import "testing"

func TestCompiledTwice(t *testing.T) {
	ours := []pkg{
		{name: "fmt"}, {name: "a", module: "a@v1"}, {name: "b", module: "b@v1", imports: []string{"fmt", "a"}},
		{name: "c", module: "c@v1", imports: []string{"fmt"}}, {name: "d", module: "d@v1", imports: []string{"b"}},
	}
	for name, c := range map[string]struct {
		others        []pkg
		shared, twice int
	}{
		"the same":                     {others: ours[:3], shared: 3},
		"another version":              {others: []pkg{{name: "fmt"}, {name: "c", module: "c@v2"}}, shared: 2, twice: 1},
		"another version of an import": {others: []pkg{{name: "fmt"}, {name: "a", module: "a@v2"}, {name: "b", module: "b@v1"}}, shared: 3, twice: 2},
	} {
		if shared, twice := compiledTwice(ours, c.others); shared != c.shared || twice != c.twice {
			t.Errorf("%s: %d shared, %d compiled twice; want %d and %d", name, shared, twice, c.shared, c.twice)
		}
	}
}
