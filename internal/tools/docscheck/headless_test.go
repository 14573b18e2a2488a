package main

import (
	"strings"
	"testing"
)

// TestHeadless finds sentences that have a clause in place of a subject.
func TestHeadless(t *testing.T) {
	for text, want := range map[string]bool{
		"What others have is left alone.":            true,
		"It is deleted. Whoever asks gets an answer": true,
		"One that fails is tried again.":             true,
		"Limits: What exceeds them waits.":           true,
		"What does the controller delete?":           false,
		"The controller deletes what nobody wants.":  false,
		"One controller runs.":                       false,
		"Those are deleted.":                         false,
		"Whatever the manifest says, it is applied.": true,
	} {
		if got := isHeadless(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// TestHeadlessList: the list only gets shorter.
func TestHeadlessList(t *testing.T) {
	const page, code = "What is old stays.\n\nWho asks gets it.\n", "package x\n\n// X is one of those.\n// What it has is old.\nvar X = 1 // goes\n// on as what it was\n"
	for name, c := range map[string]struct {
		list string
		want []string
	}{
		"as listed":   {"2 README.md\n1 x.go\n", nil},
		"more":        {"1 README.md\n1 x.go\n", []string{"README.md: 2 sentences begin with a clause in place of a subject, 1 are listed", "lines [1 3]"}},
		"in comments": {"2 README.md\n", []string{"x.go: 1 sentences begin", "lines [4]"}},
		"fewer":       {"3 README.md\n1 x.go\n1 gone.go\n", []string{"headless.txt has 3 for README.md, and there are 2", "headless.txt has 1 for gone.go, and there are 0"}},
		"no list":     {"x\n", []string{`"x" is no count and file`}},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(write(t, map[string]string{"README.md": page, "x.go": code, headlessList: c.list}))
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
