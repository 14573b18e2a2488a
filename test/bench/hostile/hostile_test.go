package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

// TestHostileClients plays each scenario for a moment: honest clients are not refused, hostile input is, and memory stays bounded. Times are for
// make hostile, on a machine that does nothing else.
func TestHostileClients(t *testing.T) {
	quiet()
	bin := t.TempDir()
	for _, name := range []string{"admission-controller", "resource-manager"} {
		if _, err := harness.Build(bin, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range scenarios {
		t.Run(s.rule+"/"+s.name, func(t *testing.T) {
			stage := newStage(t.Context(), s, bin, filepath.Join(t.TempDir(), s.name), true)
			must.Succeed(t, stage.play())
			for _, g := range stage.goals {
				if !g.met && !g.timed {
					t.Errorf("beside %s: %s", s.hostile, g)
				}
			}
			var why strings.Builder
			if stage.explain(&why); t.Failed() {
				t.Log(why.String())
			}
		})
	}
}
