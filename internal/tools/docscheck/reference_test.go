package main

import "testing"

func TestReference(t *testing.T) {
	for text, want := range map[string]int{
		"Gardener v1.150.0-dev (b312835d) is the reference.": 0,
		"| Gardener v1.150.0-dev (b312835d)'s | 1 |":         0,
		"Gardener v1.150":                   1,
		"Gardener v1.150.0-dev, b312835d":   1,
		"v1.150.0-dev (12345678), v1.150.0": 2,
		"Gardener v1.140, and 1.1500 bytes": 0,
	} {
		p := &page{path: "a.md", lines: []line{{number: 1, text: text}, {number: 2, text: "v1.150", code: true}}}
		if problems := checkReference(p); len(problems) != want {
			t.Errorf("%q: %v", text, problems)
		}
	}
}
