package rules

import (
	"testing"
	"time"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// TestOwnSeedJustCreated: the own Seed that the graph has not seen yet is looked up, so that who just created it can read it; one that does not
// exist is not told of.
func TestOwnSeedJustCreated(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	if got := decided(w.seeds, ask(t, "G get seeds seed")); !matches(got, "N(no relationship found") {
		t.Errorf("BH-SA-27, D-1: it does not exist: got %s", got)
	}
	w.live.objects["seeds:/seed"] = objectOf(t, relation.Seed, builders.Seed("seed"))
	for _, question := range []string{"G get seeds seed", "E watch seeds seed"} {
		if got := decided(w.seeds, ask(t, question)); got != "A" {
			t.Errorf("BH-SA-27, T3-2: %s: got %s", question, got)
		}
	}
	if got := decided(w.seeds, ask(t, "G get seeds other")); got == "A" {
		t.Error("BH-SA-27, D-1: another Seed is read")
	}
}

// TestReadsByScope: the garden's namespace and identity, and the own Seed, are read by name always under readScope All, and by path under
// Related, where clients of a seed come by them step by step as a gardenlet does: it lists Seeds by its label and creates its own, waits for
// its namespace, then reads the identity of the garden, and reads namespace garden once it has a Shoot there.
func TestReadsByScope(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	stages := []struct {
		name   string
		happen func()
		// open is what is allowed under Related from this stage on.
		open []string
	}{
		{"before the Seed exists", func() {}, nil},
		{"another Seed exists, with a Shoot in garden", func() {
			w.has(t, relation.Seed, builders.Seed("other"))
			w.has(t, relation.Shoot, builders.Shoot("garden", "theirs").OnSeed("other"))
		}, nil},
		{"the Seed exists", func() { w.has(t, relation.Seed, builders.Seed("seed")) },
			[]string{"seeds seed", "namespaces seed-seed/seed-seed", "configmaps kube-system/cluster-identity"}},
		{"it has a Shoot in garden", func() { w.has(t, relation.Shoot, builders.Shoot("garden", "ours").OnSeed("seed")) }, []string{"namespaces garden/garden"}},
	}
	rules := map[string]string{
		"seeds seed": "BH-SA-27, D-1", "configmaps kube-system/cluster-identity": "D-4, GE-36", "namespaces garden/garden": "SP-4, D-3", "namespaces seed-seed/seed-seed": "SR-19",
	}
	open := map[string]bool{}
	for _, stage := range stages {
		stage.happen()
		for _, object := range stage.open {
			open[object] = true
		}
		for object, rule := range rules {
			for _, client := range []string{"G", "E"} {
				for _, verb := range []string{"get", "list", "watch"} {
					for _, readAll := range []bool{true, false} {
						w.seeds.ReadAll = readAll
						want := "N(no relationship found"
						if open[object] || readAll && object != "namespaces seed-seed/seed-seed" {
							want = "A"
						}
						if got := decided(w.seeds, ask(t, client+" "+verb+" "+object)); !matches(got, want) {
							t.Errorf("%s/%s, reading all %v: %s %s %s: got %s, want %s", rule, stage.name, readAll, client, verb, object, got, want)
						}
					}
				}
			}
		}
		w.seeds.ReadAll = false
		for _, question := range []string{"G create seeds", "G list seeds label:name.seed.gardener.cloud/seed=true", "E watch seeds label:name.seed.gardener.cloud/seed=true"} {
			if got := decided(w.seeds, ask(t, question)); got != "A" {
				t.Errorf("SR-24/%s: %s: got %s", stage.name, question, got)
			}
		}
		for _, question := range []string{"G patch seeds other", "G get namespaces seed-other/seed-other", "G get seeds other", "E get namespaces kube-system/kube-system"} {
			if got := decided(w.seeds, ask(t, question)); got == "A" {
				t.Errorf("SR-19, SR-24/%s: %s is allowed", stage.name, question)
			}
		}
	}
}
