package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestDefinitions is what is a definition, and what only names a rule.
func TestDefinitions(t *testing.T) {
	const ids, number, both, other = "| ID | Rule |\n|---|---|\n", "| # | question |\n| :--- | --- |\n", "| # | ID | Check |\n|---|---|---|\n", "| Rules | verbs |\n|---|---|\n"
	for name, tc := range map[string]struct{ text, want string }{
		"first cell":                      {ids + "| ZZ-1 | x |\n", "ZZ-1:3"},
		"bold, code, a warning sign":      {ids + "| **ZZ-1** | x |\n| `ZZ-2a` | x |\n| ZZ-3 ⚠ | x |\n", "ZZ-1:3 ZZ-2a:4 ZZ-3:5"},
		"a row of another document":       {ids + "| BH-ZZ-1 | x |\n| CT-Z-1 | x |\n", "BH-ZZ-1:3 CT-Z-1:4"},
		"several decisions":               {number + "| Y7, Y8, Z24 | x |\n| Z17, Q-5 | x |\n| — | x |\n", "Y7:3 Y8:3 Z24:3 Z17:4 Q-5:4"},
		"number before the ID":            {both + "| 1 | ZZ-10 | x |\n", "ZZ-10:3"},
		"second cell":                     {ids + "| x | ZZ-1 |\n", ""},
		"more than an ID":                 {ids + "| see ZZ-1 | x |\n| MRX | x |\n| 9.4 | x |\n", ""},
		"a table about rules":             {other + "| ZZ-1, 2 | get |\n| ZZ-3 | list |\n", ""},
		"list item":                       {"- ZZ-1 x\n- **ZZ-2** x\n* ZZ-3 x\n2. ZZ-4 x\n   - ZZ-5 x\n", "ZZ-1:1 ZZ-2:2 ZZ-3:3 ZZ-4:4 ZZ-5:5"},
		"list item about rules":           {"- ZZ-1: x\n- ZZ-1, ZZ-2 x\n- ZZ-1/2 x\n- see ZZ-1\nZZ-1 x\n", ""},
		"table after another one":         {ids + "| ZZ-1 | x |\n\n" + other + "| ZZ-1 | x |\n", "ZZ-1:3"},
		"what is none":                    {"- SHA-256 x\n- RFC 3339 x\n- UTF x\n", "SHA-256:1"},
		"names that only look like a row": {ids + "| ZZ-x | x |\n| ZZZZZ-1 | x |\n| zz-1 | x |\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range definitions("x.md", tc.text) {
				got = append(got, fmt.Sprintf("%s:%d", d.id, d.line))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestIDsIn is what counts as a reference, where the prefixes QQ-, CT-QQ-, Y and Q- are defined.
func TestIDsIn(t *testing.T) {
	prefixes := map[string]bool{"QQ-": true, "CT-QQ-": true, "Y": true, "Q-": true}
	for text, want := range map[string]string{
		"QQ-1, QQ-2: x":                      "QQ-1 QQ-2",
		"QQ-1/QQ-2c/x":                       "QQ-1 QQ-2c",
		"QQ-6 … QQ-13 (Y17)":                 "QQ-6 QQ-13 Y17",
		"CT-QQ-1/Q-5":                        "CT-QQ-1 Q-5",
		"X-QQ-1, seed-Y1, aY1, Y1x2, QQ-1_2": "",
		"SHA-256, UTF-8, TLS1-2, RFC3339":    "",
		"AB1234, Q5, Y, QQ-x, CT-ZZ-1, P256": "",
		"`QQ-1`[QQ-2](x)\tQQ-3":              "QQ-1 QQ-2 QQ-3",
		"TestX/QQ-1_a":                       "",
		"QQ-7-something":                     "QQ-7",
	} {
		if got := idsIn(text, prefixes); strings.Join(got, " ") != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestMeant says which rules a reference is for.
func TestMeant(t *testing.T) {
	c := &contract{known: map[string]bool{"ZZ-1": true, "ZZ-2": true, "ZZ-2a": true, "ZZ-4e": true, "ZZ-4g": true}, parts: map[string][]string{"ZZ-2": {"ZZ-2a"}, "ZZ-4": {"ZZ-4e", "ZZ-4g"}}}
	for reference, want := range map[string][]string{
		"ZZ-1": {"ZZ-1"}, "ZZ-1c": {"ZZ-1"}, "ZZ-2": {"ZZ-2"}, "ZZ-2a": {"ZZ-2a"}, "ZZ-2b": {"ZZ-2"}, "ZZ-4": {"ZZ-4e", "ZZ-4g"}, "ZZ-4f": nil, "ZZ-5": nil,
	} {
		if got := c.meant(reference); !slices.Equal(got, want) {
			t.Errorf("%s: got %s, want %s", reference, got, want)
		}
	}
}
