package main

import (
	"os/exec"
	"path/filepath"
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
