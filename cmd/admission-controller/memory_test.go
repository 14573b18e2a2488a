package main

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestCollectEarly(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "80")
	if collectEarly(); debug.SetGCPercent(100) != 100 {
		t.Error("what the environment says is changed")
	}
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	if collectEarly(); debug.SetGCPercent(100) != collectAt {
		t.Error("nothing is changed")
	}
}
