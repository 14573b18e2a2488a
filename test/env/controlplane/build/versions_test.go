package main

import "testing"

func TestNearest(t *testing.T) {
	served := []string{"v0.34.0-rc.1", "v0.34.2", "v0.34.3", "v0.34.5", "v0.34.10", "v0.35.4"}
	for _, c := range []struct {
		prefix string
		wanted int
		want   string
	}{
		{"v0.34.", 3, "v0.34.3"},
		{"v0.34.", 4, "v0.34.5"},
		{"v0.34.", -1, "v0.34.10"},
		{"v0.36.", 1, ""},
		{"v0.3.", 1, ""},
	} {
		if got := nearest(served, c.prefix, c.wanted); got != c.want {
			t.Errorf("nearest to %s%d is %q, want %q", c.prefix, c.wanted, got, c.want)
		}
	}
}

func TestModFile(t *testing.T) {
	staging := stagingModules("replace (\n\tk8s.io/api v0.0.0 => k8s.io/api v0.37.2\n\tk8s.io/streaming v0.0.0 => k8s.io/streaming v0.37.2\n)\n")
	got := modFile("v1.34.4", staging, map[string][]string{"k8s.io/api": {"v0.34.4"}, "k8s.io/streaming": {"v0.36.0"}})
	const want = "module github.com/espalier-project/espalier/test/env/controlplane\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v1.34.4\n\n" +
		"replace k8s.io/api v0.0.0 => k8s.io/api v0.34.4\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
