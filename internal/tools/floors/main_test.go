package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	house := []floor{
		{name: "ground", rooms: []string{"low/..."}, together: true, without: []string{"net", "k8s.io/client-go"}, except: []string{"k8s.io/client-go/scheme"}},
		{name: "middle", rooms: []string{"mid/...", "kit"}, shared: []string{"kit"}},
		{name: "roof", rooms: []string{"roof"}},
	}
	for name, c := range map[string]struct{ file, imported, want string }{
		"down":                             {"roof/a.go", module + "low/x", ""},
		"down from the middle":             {"mid/x/a.go", module + "low/x/y", ""},
		"up":                               {"low/x/a.go", module + "mid/x", "never goes up, from ground to middle"},
		"sideways, together":               {"low/x/a.go", module + "low/y", ""},
		"sideways":                         {"mid/x/a.go", module + "mid/y", "moves down"},
		"sideways, to what is shared":      {"mid/x/a.go", module + "kit", ""},
		"into a folder of its own":         {"mid/x/a.go", module + "mid/x/inner", ""},
		"out of a folder":                  {"mid/x/inner/a.go", module + "mid/x", "moves down"},
		"a package without a place":        {"new/a.go", "fmt", "new has no place in the house"},
		"a room is exact":                  {"roof/new/a.go", "fmt", "has no place in the house"},
		"to a package without a place":     {"roof/a.go", module + "new", "it has no place in the house"},
		"others'":                          {"low/x/a.go", "net", "has no place on the floor ground"},
		"below others'":                    {"low/x/a.go", "net/http", "has no place on the floor ground"},
		"others' with the same beginning":  {"low/x/a.go", "netip", ""},
		"others' that is excepted":         {"low/x/a.go", "k8s.io/client-go/scheme", ""},
		"others' beside what is excepted":  {"low/x/a.go", "k8s.io/client-go/rest", "has no place on the floor ground"},
		"others' where nothing is refused": {"roof/a.go", "net/http", ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := judge(house, c.file, []string{c.imported})
			switch {
			case c.want == "" && len(problems) != 0:
				t.Errorf("got %v", problems)
			case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want)):
				t.Errorf("got %v, want %s", problems, c.want)
			}
		})
	}
}

// TestHouse: the repository keeps to its own table.
func TestHouse(t *testing.T) {
	if err := check("../../..", house); err != nil {
		t.Error(err)
	}
}
