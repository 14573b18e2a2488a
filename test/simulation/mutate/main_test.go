package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A defect whose patch does not fit the code any more is searched for in vain.
func TestPatchesFit(t *testing.T) {
	patches, err := filepath.Glob("../mutants/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("%d patches: %v", len(patches), err)
	}
	for _, patch := range patches {
		absolute, err := filepath.Abs(patch)
		if err != nil {
			t.Fatal(err)
		}
		check := exec.Command("git", "apply", "--check", "-C1", "--recount", absolute)
		check.Dir = "../../.."
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", filepath.Base(patch), out)
		}
	}
}

// A test that is not there finds nothing.
func TestNamedTestsAreThere(t *testing.T) {
	patches, err := filepath.Glob("../mutants/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		named := foundBy.FindSubmatch(text)
		if named == nil {
			if strings.Contains(string(text), "Found by") {
				t.Errorf("%s does not name one test", filepath.Base(patch))
			}
			continue
		}
		if !declares(t, filepath.Join("../../..", string(named[1])), string(named[2])) {
			t.Errorf("%s: there is no %s in %s", filepath.Base(patch), named[2], named[1])
		}
	}
}

// declares says whether a package has a test.
func declares(t *testing.T, dir, test string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
