// Package golden compares what tests make with files that somebody has reviewed.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/must"
)

// update is a flag of every test that compares with a file.
var update = flag.Bool("update", false, "write the files anew that tests compare with")

// Compare compares a text with a file, line by line. With -update it writes the file.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must.Succeed(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must.Succeed(t, err)
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Errorf("%s, line %d:\ngot  %s\nwant %s", file, i+1, gotLines[i], wantLines[i])
		}
	}
	t.Errorf("%s has %d lines, want %d; review, then run with -update", file, len(wantLines), len(gotLines))
}
